package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// parallelRequests is how many requests go out side by side.
const parallelRequests = 100

// floodOperation is an operation under a flood.
type floodOperation struct {
	name string
	// key makes the key of a flood, and the key under which the operator's effects stand.
	key func(*target) string
	// newRequest makes the request; other asks for a second body under the same key.
	newRequest func(g *target, key string, other bool) *requestBuilder
	// amount is the field that the second body changes, as the answer shows it; "" where it shows none.
	amount string
	// repeatConflicts is true where a repeat of what is done is a 409 (decision "sms-duplicate").
	repeatConflicts bool
	// rejectsOtherBody is true where another body under a key that is done is a 409 (decision "pay-repeat").
	rejectsOtherBody bool
}

// floodOperations are the three, each with a number that brings success.
func floodOperations() []floodOperation {
	const root = "amountTransaction.paymentAmount.chargingInformation.amount"
	return []floodOperation{
		{
			name: "charge", amount: root, key: func(g *target) string { return g.newID() + "f" },
			newRequest: func(g *target, key string, other bool) *requestBuilder {
				a := newCharge(g.merchantCredentials, key, g.GWAlias)
				if other {
					setPath(a.body, root, "900")
				}
				return a
			},
		},
		{
			name: "pay", amount: "amount", rejectsOtherBody: true, key: func(g *target) string { return g.Merchant + "_" + g.newID() },
			newRequest: func(g *target, key string, other bool) *requestBuilder {
				a := newPayment(g.merchantCredentials, key, "ussd", successfulMSISDN)
				if other {
					a.body["amount"] = "900"
				}
				return a
			},
		},
		{
			name: "sms", repeatConflicts: true, rejectsOtherBody: true, key: func(g *target) string { return g.newID() + "f" },
			newRequest: func(g *target, key string, other bool) *requestBuilder {
				a := newSMS(g.merchantCredentials, key, g.GWAlias, "tel:+2250000")
				if other {
					setPath(a.body, "outboundSMSMessageRequest.outboundSMSTextMessage.message", "Autre")
				}
				return a
			},
		},
	}
}

// runFloods: of any number of equal requests side by side one has an effect, and each gets the same answer or a 409.
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

// sendFlood sends the requests at once and judges the answers by each other and by the operator's effects.
func (f floodOperation) sendFlood(t *testing.T, g *target, otherBodies bool) {
	key := f.key(g)
	responses := make([]observation, parallelRequests)
	client := newClient()
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

// mustExchange is an exchange that must come to an answer.
func mustExchange(t *testing.T, client *http.Client, request *http.Request) observation {
	response, err := exchange(client, request)
	if err != nil {
		t.Error(err)
	}
	return response
}

// checkResponses allows equal 201s and 409s, and gives back a 201.
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
			t.Error(a.errorf("another answer than %s", created.body))
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
			t.Error(a.errorf("neither the answer nor 409 in flight"))
		}
		count[kind]++
	}
	t.Logf("answers: %v", count)
	if count["201"] == 0 || f.repeatConflicts && count["201"] > 1 {
		t.Errorf("%d answers of 201", count["201"])
	}
	return created
}

// checkEffect: one effect, and of the body that was answered.
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
	if notified, err := created.textValue(f.amount); err != nil || notified != found[0].Amount {
		t.Errorf("the effect is of %s, the answer of %s (%v)", found[0].Amount, notified, err)
	}
}

// eventually repeats a look until it holds.
func eventually[T any](t testing.TB, wait time.Duration, check func() (T, error)) T {
	t.Helper()
	started := time.Now()
	for {
		value, err := check()
		if err == nil {
			return value
		}
		if time.Since(started) > wait {
			t.Fatalf("not within %s: %v", wait, err)
		}
		time.Sleep(pollEvery)
	}
}
