package orangewebpay_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

func TestTokenRenewal(t *testing.T) {
	page := operatortest.Respond(201, operatortest.ReadFile(t, "pay-response.json"))
	expired := orangeError(401, "42")
	first, next := token(firstToken, "3600"), token(nextToken, `"3600"`)
	cases := []struct {
		name    string
		steps   []operatortest.Responder
		outcome operator.Outcome
		kind    fault.Kind
		want    []string
	}{
		{"expired in the middle", []operatortest.Responder{first, expired, next, page}, operator.Succeeded, 0,
			[]string{tokenLine, payLine + firstToken, tokenLine, payLine + nextToken}},
		{"expired twice", []operatortest.Responder{first, expired, next, expired}, operator.NotApplied,
			fault.IntegrationRejected, []string{tokenLine, payLine + firstToken, tokenLine, payLine + nextToken}},
		{"no new token", []operatortest.Responder{first, expired, orangeError(500, "1")}, operator.NotApplied,
			fault.OperatorUnavailable, []string{tokenLine, payLine + firstToken, tokenLine}},
		{"cut after the renewal", []operatortest.Responder{first, expired, next, operatortest.CloseConnection()},
			operator.Unknown, fault.OutcomeUnknown,
			[]string{tokenLine, payLine + firstToken, tokenLine, payLine + nextToken}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, c.steps...)
			got := newDriver(t, account(stub.URL), newClock()).Pay(t.Context(), payCall())
			checkResult(t, got.Result, c.outcome, c.kind, false)
			if diff := cmp.Diff(c.want, lines(stub)); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// A token is used for its life, and no longer after any 401 of Orange.
func TestTokenIsCached(t *testing.T) {
	page := operatortest.Respond(201, operatortest.ReadFile(t, "pay-response.json"))
	stub := operatortest.NewStubOperator(t)
	c := newClock()
	driver := newDriver(t, account(stub.URL), c)
	pay := func(want int, steps ...operatortest.Responder) {
		t.Helper()
		stub.ClearRequests()
		stub.SetResponses(steps...)
		driver.Pay(t.Context(), payCall())
		if sent := len(stub.Requests()); sent != want {
			t.Errorf("%d requests, want %d", sent, want)
		}
	}
	pay(2, token(firstToken, `"60"`), page)
	c.at = c.at.Add(29 * time.Second)
	pay(1, page)
	c.at = c.at.Add(time.Second) // half of its life
	pay(2, token(nextToken, "7776000"), page)
	c.at = c.at.Add(89 * 24 * time.Hour)
	pay(1, orangeError(401, "41"))
	pay(2, token(firstToken, "0"), page)
	pay(2, token(firstToken, "99999999999"), page)
	c.at = c.at.Add(91 * 24 * time.Hour)
	pay(2, token(firstToken, "60"), page)
}
