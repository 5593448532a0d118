package wave_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/operator"
)

// A payment may have several sessions, in any order of the list. Each row has sessions in the order in which they
// decide; every permutation must give the first row's report.
func TestSessionsDecideInAnyOrder(t *testing.T) {
	session := func(payment, checkout, id string) string {
		return changed(t, "session-paid.json", "payment_status", `"`+payment+`"`, "checkout_status", `"`+checkout+`"`,
			"transaction_id", `"`+id+`"`)
	}
	paid, open := session("succeeded", "complete", "paid"), session("processing", "open", "")
	cancelled, expired := session("cancelled", "complete", ""), session("processing", "expired", "")
	unread := session("reversed", "complete", "")
	for name, sessions := range map[string][]string{
		"paid decides":                       {paid, unread, open, cancelled, expired},
		"an unread one prevents a final end": {unread, open, cancelled, expired},
		"an open one prevents a final end":   {open, cancelled, expired},
		"cancelled decides over expired":     {cancelled, expired},
	} {
		t.Run(name, func(t *testing.T) {
			decides := lookUp(t, sessions[:1])
			for permutation := range permutations(sessions) {
				if diff := cmp.Diff(decides, lookUp(t, permutation), cmpopts.EquateErrors()); diff != "" {
					t.Fatalf("sessions %v (-want +got):\n%s", permutation, diff)
				}
			}
		})
	}
}

// lookUp looks a payment with these sessions up.
func lookUp(t *testing.T, sessions []string) operator.StatusResponse {
	t.Helper()
	stub := operatortest.NewStubOperator(t, operatortest.Respond(200, listOf(sessions...)))
	defer stub.Close()
	return newDriver(t, account(stub.URL)).LookUpPayment(t.Context(), statusCall())
}

// permutations yields all orders of a list. The yielded slice is valid until the next one.
func permutations(list []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		order := slices.Clone(list)
		var permute func(from int) bool
		permute = func(from int) bool {
			if from == len(order) {
				return yield(order)
			}
			for i := from; i < len(order); i++ {
				order[from], order[i] = order[i], order[from]
				goOn := permute(from + 1)
				order[from], order[i] = order[i], order[from]
				if !goOn {
					return false
				}
			}
			return true
		}
		permute(0)
	}
}
