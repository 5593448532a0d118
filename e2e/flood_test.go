package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// floodSize is how many requests go out side by side.
const floodSize = 100

// flooded is an operation under a flood.
type flooded struct {
	name string
	// key makes the key of a flood, and the key under which the operator's effects stand.
	key func(*target) string
	// ask makes the request; other asks for a second body under the same key.
	ask func(g *target, key string, other bool) *ask
	// amount is the field that the second body changes, as the answer shows it; "" where it shows none.
	amount string
	// once is true where a repeat of what is done is a 409 (decision "sms-duplicate").
	once bool
	// owned is true where another body under a key that is done is a 409 (decision "pay-repeat").
	owned bool
}

// floodedOperations are the three, each with a number that brings success.
func floodedOperations() []flooded {
	const root = "amountTransaction.paymentAmount.chargingInformation.amount"
	return []flooded{
		{
			name: "charge", amount: root, key: func(g *target) string { return g.newID() + "f" },
			ask: func(g *target, key string, other bool) *ask {
				a := newCharge(g.shop, key, g.GWAlias)
				if other {
					put(a.body, root, "900")
				}
				return a
			},
		},
		{
			name: "pay", amount: "amount", owned: true, key: func(g *target) string { return g.Merchant + "_" + g.newID() },
			ask: func(g *target, key string, other bool) *ask {
				a := newPayment(g.shop, key, "ussd", plainNumber)
				if other {
					a.body["amount"] = "900"
				}
				return a
			},
		},
		{
			name: "sms", once: true, owned: true, key: func(g *target) string { return g.newID() + "f" },
			ask: func(g *target, key string, other bool) *ask {
				a := newSMS(g.shop, key, g.GWAlias, "tel:+2250000")
				if other {
					put(a.body, "outboundSMSMessageRequest.outboundSMSTextMessage.message", "Autre")
				}
				return a
			},
		},
	}
}

// floods: of any number of equal requests side by side one has an effect, and each gets the same answer or a 409.
func floods(t *testing.T, g *target) {
	for _, operation := range floodedOperations() {
		t.Run("specification, Charge rule 2: equal requests: "+operation.name, func(t *testing.T) {
			t.Parallel()
			operation.flood(t, g, false)
		})
		t.Run("decision in-flight: two bodies under one key: "+operation.name, func(t *testing.T) {
			t.Parallel()
			operation.flood(t, g, true)
		})
	}
}

// flood sends the requests at once and judges the answers by each other and by the operator's effects.
func (f flooded) flood(t *testing.T, g *target, mixed bool) {
	key := f.key(g)
	answers := make([]reply, floodSize)
	client := newClient()
	var group sync.WaitGroup
	gate := make(chan struct{})
	for i := range floodSize {
		request, err := f.ask(g, key, mixed && i%2 == 1).request(g.BaseURL)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			<-gate
			answers[i] = sure(t, client, request)
		})
	}
	close(gate)
	group.Wait()
	created := f.judge(t, answers)
	f.judgeEffect(t, g, key, created)
}

// sure is an exchange that must come to an answer.
func sure(t *testing.T, client *http.Client, request *http.Request) reply {
	answer, err := exchange(client, request)
	if err != nil {
		t.Error(err)
	}
	return answer
}

// judge allows equal 201s and 409s, and gives back a 201.
func (f flooded) judge(t *testing.T, answers []reply) reply {
	t.Helper()
	var created reply
	count := map[string]int{}
	for _, a := range answers {
		kind := fmt.Sprint(a.status)
		switch {
		case a.status == http.StatusCreated && created.status == 0:
			created = a
		case a.status == http.StatusCreated && string(a.body) != string(created.body):
			t.Error(a.wrong("another answer than %s", created.body))
		case a.status == http.StatusConflict && a.header.Get("Retry-After") != "":
			kind += " in flight"
		case a.status == http.StatusConflict && f.owned:
			kind += " duplicate"
			if id, _ := a.text("requestError.serviceException.messageId"); id != "SVC0005" {
				t.Error(a.wrong("a 409 without SVC0005"))
			}
			if f.once && a.header.Get("Location") == "" {
				t.Error(a.wrong("a duplicate without Location (decision \"sms-duplicate\")"))
			}
		case a.status != http.StatusCreated:
			t.Error(a.wrong("neither the answer nor 409 in flight"))
		}
		count[kind]++
	}
	t.Logf("answers: %v", count)
	if count["201"] == 0 || f.once && count["201"] > 1 {
		t.Errorf("%d answers of 201", count["201"])
	}
	return created
}

// judgeEffect: one effect, and of the body that was answered.
func (f flooded) judgeEffect(t *testing.T, g *target, key string, created reply) {
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
	if told, err := created.text(f.amount); err != nil || told != found[0].Amount {
		t.Errorf("the effect is of %s, the answer of %s (%v)", found[0].Amount, told, err)
	}
}

// eventually repeats a look until it holds.
func eventually[T any](t testing.TB, wait time.Duration, look func() (T, error)) T {
	t.Helper()
	began := time.Now()
	for {
		value, err := look()
		if err == nil {
			return value
		}
		if time.Since(began) > wait {
			t.Fatalf("not within %s: %v", wait, err)
		}
		time.Sleep(pollEvery)
	}
}
