package e2e

import (
	"net/http"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	// heldPayments are pending when a change of the deployment begins, and become final while it goes on.
	heldPayments = 150
	// freshPayments are begun while it goes on.
	freshPayments = 50
	// merchantsAtOnce is how many requests are under way at any time.
	merchantsAtOnce = 8
	// changeAtLeast is over how long the payments are spread, should the change take less.
	changeAtLeast = 10 * time.Second
)

// TestChangeInFlight changes the deployment under payments in flight: a second deployment of other programs, then a new
// key in each ring. Every payment becomes final and is told, with one effect each. E2E_DEPLOY_URL is where whoever started
// the target takes the wish: POST /programs and POST /keys, answered when it is done.
func TestChangeInFlight(t *testing.T) {
	address := os.Getenv("E2E_DEPLOY_URL")
	if address == "" {
		t.Skip("there is nobody to ask for another deployment: a local run has none")
	}
	g := open(t)
	for _, change := range []string{"programs", "keys"} {
		t.Run(change, func(t *testing.T) { changeInFlight(t, g, address+"/"+change) })
	}
}

// changeInFlight makes one change under payments in flight.
func changeInFlight(t *testing.T, g *target, address string) {
	held, fresh := namePayments(g, heldPayments, "1003"), namePayments(g, freshPayments, "2000")
	spread(held, 0, func(one payment) { patient(t, g, one) })
	changed := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		if answer, err := http.Post(address, "", nil); err != nil || answer.StatusCode >= 300 {
			t.Errorf("the change failed: %v %v", answer, err)
		}
		changed <- time.Since(began)
	}()
	var group sync.WaitGroup
	group.Go(func() {
		spread(fresh, changeAtLeast/freshPayments*merchantsAtOnce, func(one payment) { patient(t, g, one) })
	})
	group.Go(func() {
		spread(held, changeAtLeast/heldPayments*merchantsAtOnce, func(one payment) {
			body := map[string]any{"key": one.order, "status": "successful"}
			if err := g.control(http.MethodPost, "settle", body, nil); err != nil {
				t.Error(err)
			}
		})
	})
	group.Wait()
	t.Logf("the change took %s", (<-changed).Round(time.Second))
	spread(append(held, fresh...), 0, func(one payment) { one.judge(t, g) })
}

// namePayments are payments by ussd that are to become successful, from a number that ends in digits.
func namePayments(g *target, count int, digits string) []payment {
	var all []payment
	for range count {
		all = append(all, payment{g.Merchant + "_" + g.newID(), "+225070000" + digits, "successful"})
	}
	return all
}

// spread does something with each payment, a few side by side, each followed by a pause.
func spread(payments []payment, pause time.Duration, do func(payment)) {
	next := make(chan payment)
	var group sync.WaitGroup
	for range merchantsAtOnce {
		group.Go(func() {
			for one := range next {
				do(one)
				time.Sleep(pause)
			}
		})
	}
	for _, one := range payments {
		next <- one
	}
	close(next)
	group.Wait()
}
