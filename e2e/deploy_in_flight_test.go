package e2e

import (
	"net/http"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	// inFlightPayments are pending when the change begins and become final during it.
	inFlightPayments = 150
	// freshPayments are started during the change.
	freshPayments = 50
	// parallelMerchants is how many requests are in flight at any time.
	parallelMerchants = 8
	// changeAtLeast is the time over which the payments are spread, even if the change is faster.
	changeAtLeast = 10 * time.Second
)

// TestDeployWithPaymentsInFlight changes the deployment while payments are in flight: first a deployment of other
// programs, then a new key in each ring. Every payment becomes final and is notified, with one effect each. The
// program that started the target makes the changes at E2E_DEPLOY_CONTROL_URL: POST /programs and POST /keys respond
// when the change is complete.
func TestDeployWithPaymentsInFlight(t *testing.T) {
	address := os.Getenv("E2E_DEPLOY_CONTROL_URL")
	if address == "" {
		t.Skip("E2E_DEPLOY_CONTROL_URL is not set: the target cannot change its deployment")
	}
	g := openTarget(t)
	for _, change := range []string{"programs", "keys"} {
		t.Run(change, func(t *testing.T) { changeInFlight(t, g, address+"/"+change) })
	}
}

// changeInFlight makes one change while payments are in flight.
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
		forEachPaced(fresh, changeAtLeast/freshPayments*parallelMerchants,
			func(one payment) { retryUntilAccepted(t, g, one) })
	})
	group.Go(func() {
		forEachPaced(stored, changeAtLeast/inFlightPayments*parallelMerchants, func(one payment) {
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

// successfulPayments returns payments by ussd, from a number with the given last digits, that must become successful.
func successfulPayments(g *target, count int, digits string) []payment {
	var all []payment
	for range count {
		all = append(all, payment{g.Merchant + "_" + g.newID(), "+225070000" + digits, "successful"})
	}
	return all
}

// forEachPaced calls a function with each payment, a few in parallel, each followed by a pause.
func forEachPaced(payments []payment, pause time.Duration, do func(payment)) {
	forEachParallel(parallelMerchants, len(payments), func(i int) {
		do(payments[i])
		time.Sleep(pause)
	})
}

// forEachParallel calls a function with the numbers below count, in parallel workers. A fatal failure ends its worker.
func forEachParallel(workers, count int, do func(int)) {
	next := make(chan int, count)
	for i := range count {
		next <- i
	}
	close(next)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	group.Wait()
}
