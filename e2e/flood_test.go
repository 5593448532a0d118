package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"mobilegateway/e2e/harness"
)

// parallelRequests is how many requests a flood sends in parallel.
const parallelRequests = 100

// floodOperation is an operation for parallel equal requests.
type floodOperation struct {
	name string
	// amount is the path of the amount in the request and the response; "" for none.
	amount string
	// repeatConflicts is true if a repeat of an applied request gets 409 (decision "sms-duplicate").
	repeatConflicts bool
	// rejectsOtherBody is true if another body under an applied key gets 409 (decision "pay-repeat").
	rejectsOtherBody bool
}

// floodOperations returns the three operations.
func floodOperations() []floodOperation {
	return []floodOperation{
		{name: "charge", amount: "amountTransaction.paymentAmount.chargingInformation.amount"},
		{name: "pay", amount: "amount", rejectsOtherBody: true},
		{name: "sms", repeatConflicts: true, rejectsOtherBody: true},
	}
}

// newRequest returns a request that succeeds, with another body under the same key if other is set.
func (f floodOperation) newRequest(g *target, key string, other bool) *requestBuilder {
	var a *requestBuilder
	path, value := f.amount, "900"
	switch f.name {
	case "charge":
		a = newCharge(g.MerchantCredentials, key, g.GWAlias)
	case "pay":
		a = newPayment(g.MerchantCredentials, key, "ussd", successfulMSISDN)
	default:
		a = newSMS(g.MerchantCredentials, key, g.GWAlias, "tel:+2250000")
		path, value = "outboundSMSMessageRequest.outboundSMSTextMessage.message", "Autre"
	}
	if other {
		setPath(a.body, path, value)
	}
	return a
}

// newKey returns a new key of the merchant, which is also the key of the effects at the operator.
func (f floodOperation) newKey(g *target) string {
	if f.name == "pay" {
		return g.Merchant + "_" + g.newID()
	}
	return g.newID() + "f"
}

// runFloods checks that parallel equal requests have one effect, and that each gets the same response or a 409.
func runFloods(t *testing.T, g *target) {
	for _, operation := range floodOperations() {
		t.Run("specification, Charge rule 2: equal requests: "+operation.name, func(t *testing.T) {
			t.Parallel()
			operation.sendFlood(t, g, false)
		})
		t.Run("decision in-flight: two bodies under one key: "+operation.name, func(t *testing.T) {
			t.Parallel()
			operation.sendFlood(t, g, true)
		})
	}
}

// sendFlood sends the requests at once, then compares the responses and the operator's effects.
func (f floodOperation) sendFlood(t *testing.T, g *target, otherBodies bool) {
	key := f.newKey(g)
	responses := make([]observation, parallelRequests)
	client := newClient()
	client.Timeout = 0 // a slow target processes the requests in turn, so only the test's own deadline bounds them
	var group sync.WaitGroup
	startSignal := make(chan struct{})
	for i := range parallelRequests {
		request, err := f.newRequest(g, key, otherBodies && i%2 == 1).build(g.BaseURL)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			<-startSignal
			responses[i] = mustExchange(t, client, request)
		})
	}
	close(startSignal)
	group.Wait()
	created := f.checkResponses(t, responses)
	f.checkEffect(t, g, key, created)
}

// mustExchange sends a request, which must get a response.
func mustExchange(t *testing.T, client *http.Client, request *http.Request) observation {
	response, err := exchange(client, request)
	if err != nil {
		t.Error(err)
	}
	return response
}

// mustSend builds and sends a request, which must get a response.
func (g *target) mustSend(t *testing.T, a *requestBuilder) observation {
	t.Helper()
	response, err := g.send(a)
	if err != nil {
		t.Error(err)
	}
	return response
}

// send builds and sends a request.
func (g *target) send(a *requestBuilder) (observation, error) {
	request, err := a.build(g.BaseURL)
	if err != nil {
		return observation{}, err
	}
	return exchange(newClient(), request)
}

// checkStatus looks a payment of the first merchant up, which must have a status.
func (g *target) checkStatus(order, want string) error {
	found, err := g.send(newLookup(g.MerchantCredentials, order))
	if err != nil {
		return err
	}
	if got, err := found.textValue("status"); err != nil || got != want {
		return found.errorf("the status is %q, want %q", got, want)
	}
	return nil
}

// checkResponses allows equal 201s and 409s. It returns a 201.
func (f floodOperation) checkResponses(t *testing.T, responses []observation) observation {
	t.Helper()
	var created observation
	count := map[string]int{}
	for _, a := range responses {
		kind := fmt.Sprint(a.status)
		switch {
		case a.status == http.StatusCreated && created.status == 0:
			created = a
		case a.status == http.StatusCreated && string(a.body) != string(created.body):
			t.Error(a.errorf("another response than %s", created.body))
		case a.status == http.StatusConflict && a.header.Get("Retry-After") != "":
			kind += " in flight"
		case a.status == http.StatusConflict && f.rejectsOtherBody:
			kind += " duplicate"
			if id, _ := a.textValue("requestError.serviceException.messageId"); id != "SVC0005" {
				t.Error(a.errorf("a 409 without SVC0005"))
			}
			if f.repeatConflicts && a.header.Get("Location") == "" {
				t.Error(a.errorf("a duplicate without Location (decision \"sms-duplicate\")"))
			}
		case a.status != http.StatusCreated:
			t.Error(a.errorf("neither 201 nor 409 in flight"))
		}
		count[kind]++
	}
	t.Logf("responses: %v", count)
	if count["201"] == 0 || f.repeatConflicts && count["201"] > 1 {
		t.Errorf("%d responses with 201, want one or, for a replay, more", count["201"])
	}
	return created
}

// checkEffect checks that there is one effect, with the amount of the response.
func (f floodOperation) checkEffect(t *testing.T, g *target, key string, created observation) {
	t.Helper()
	kind := map[string]string{"charge": "charge", "pay": "payment", "sms": "sms"}[f.name]
	found := eventually(t, 10*time.Second, func() ([]effect, error) {
		effects, err := g.effectsOf(key, kind)
		if err == nil && len(effects) == 0 {
			err = fmt.Errorf("no effect under %s", key)
		}
		return effects, err
	})
	if len(found) != 1 {
		t.Fatalf("%d effects under %s, want one: %+v", len(found), key, found)
	}
	if f.amount == "" || created.status != http.StatusCreated {
		return
	}
	if responded, err := created.textValue(f.amount); err != nil || responded != found[0].Amount {
		t.Errorf("the effect has the amount %s, the response %s (%v)", found[0].Amount, responded, err)
	}
}

// eventually repeats a check until it returns no error, and returns its value.
func eventually[T any](t testing.TB, wait time.Duration, check func() (T, error)) T {
	t.Helper()
	var value T
	eventuallyNoError(t, wait, func() (err error) {
		value, err = check()
		return err
	})
	return value
}

// eventuallyNoError repeats a check until it returns no error.
func eventuallyNoError(t testing.TB, wait time.Duration, check func() error) {
	t.Helper()
	if err := harness.Poll(t.Context(), wait, check); err != nil {
		t.Fatalf("timeout after %s: %v", wait, err)
	}
}
