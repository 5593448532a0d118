package wave_test

import (
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
			bench, stub := suite(t), operatortest.NewStubOperator(t)
			lookUp := func(sessions []string) operator.StatusResponse {
				stub.SetResponses(respond(200, listOf(sessions...)))
				return bench.LookUp(t, stub, statusCall())
			}
			decides := lookUp(sessions[:1])
			for _, permutation := range permutations(sessions) {
				if diff := cmp.Diff(decides, lookUp(permutation), cmpopts.EquateErrors()); diff != "" {
					t.Fatalf("sessions %v (-want +got):\n%s", permutation, diff)
				}
			}
		})
	}
}

// permutations are all orders of a list.
func permutations(list []string) [][]string {
	if len(list) < 2 {
		return [][]string{list}
	}
	var all [][]string
	for i, first := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		for _, order := range permutations(rest) {
			all = append(all, append([]string{first}, order...))
		}
	}
	return all
}
