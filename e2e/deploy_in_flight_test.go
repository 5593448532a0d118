package e2e

import (
	"net/http"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	// inFlightPayments are pending when a change of the deployment begins, and become final while it goes on.
	inFlightPayments = 150
	// freshPayments are begun while it goes on.
	freshPayments = 50
	// merchantsAtOnce is how many requests are under way at any time.
	merchantsAtOnce = 8
	// changeAtLeast is over how long the payments are spread, should the change take less.
	changeAtLeast = 10 * time.Second
)

// TestDeployWithPaymentsInFlight changes the deployment under payments in flight: a second deployment of other programs, then a new
// key in each ring. Every payment becomes final and is told, with one effect each. E2E_DEPLOY_CONTROL_URL is where whoever started
// the target takes the wish: POST /programs and POST /keys, answered when it is done.
func TestDeployWithPaymentsInFlight(t *testing.T) {
	address := os.Getenv("E2E_DEPLOY_CONTROL_URL")
	if address == "" {
		t.Skip("there is nobody to ask for another deployment: a local run has none")
	}
	g := openTarget(t)
	for _, change := range []string{"programs", "keys"} {
		t.Run(change, func(t *testing.T) { changeInFlight(t, g, address+"/"+change) })
	}
}

// changeInFlight makes one change under payments in flight.
func changeInFlight(t *testing.T, g *target, address string) {
	stored, fresh := successfulPayments(g, inFlightPayments, "1003"), successfulPayments(g, freshPayments, "2000")
	forEachPaced(stored, 0, func(one payment) { retryUntilAccepted(t, g, one) })
	changed := make(chan time.Duration, 1)
	go func() {
		started := time.Now()
		if response, err := http.Post(address, "", nil); err != nil || response.StatusCode >= 300 {
			t.Errorf("the change failed: %v %v", response, err)
		}
		changed <- time.Since(started)
	}()
	var group sync.WaitGroup
	group.Go(func() {
		forEachPaced(fresh, changeAtLeast/freshPayments*merchantsAtOnce, func(one payment) { retryUntilAccepted(t, g, one) })
	})
	group.Go(func() {
		forEachPaced(stored, changeAtLeast/inFlightPayments*merchantsAtOnce, func(one payment) {
			body := map[string]any{"key": one.order, "status": "successful"}
			if err := g.sandboxControl(http.MethodPost, "settle", body, nil); err != nil {
				t.Error(err)
			}
		})
	})
	group.Wait()
	t.Logf("the change took %s", (<-changed).Round(time.Second))
	forEachPaced(append(stored, fresh...), 0, func(one payment) { one.checkFinal(t, g) })
}

// successfulPayments are payments by ussd that are to become successful, from a number that ends in digits.
func successfulPayments(g *target, count int, digits string) []payment {
	var all []payment
	for range count {
		all = append(all, payment{g.Merchant + "_" + g.newID(), "+225070000" + digits, "successful"})
	}
	return all
}

// forEachPaced does something with each payment, a few side by side, each followed by a pause.
func forEachPaced(payments []payment, pause time.Duration, do func(payment)) {
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
