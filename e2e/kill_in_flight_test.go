package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// inFlightCount is how many payments are in flight when processes die.
	inFlightCount = 50
	// killInterval is the pause between two kills of a function process.
	killInterval = 150 * time.Millisecond
	// killRunAfter is when the whole run is killed.
	killRunAfter = 3 * time.Second
)

// killAndRestart kills the whole run with SIGKILL, checks that no process is left, and starts it again on the same
// ports and folder.
func killAndRestart(t *testing.T, p *makeProcess, g *target, port string) {
	t.Helper()
	before := mustReadTarget(t, g.path).PIDs
	if err := syscall.Kill(before.Run, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitExit(t, 10*time.Second)
	waitGone(t, processIDs(before))
	startMakeRun(t, p.dir, port, "SPEED=60").waitReady(t)
}

// payment is one payment with its expected final status.
type payment struct {
	order, msisdn, status string
}

// TestKillWithPaymentsInFlight kills random function processes while 50 payments are in flight, and once the whole
// run. Every payment becomes final, every merchant is notified, and there is one effect each.
func TestKillWithPaymentsInFlight(t *testing.T) {
	requireLocalRun(t)
	if testing.Short() {
		t.Skip("the sweep delivers for a killed relay after 60 seconds")
	}
	t.Parallel()
	dir, port := t.TempDir(), "PORT="+freePorts(t)
	p := startMakeRun(t, dir, port, "SPEED=60")
	g := p.waitReady(t)
	payments := newPayments(g)
	stop := make(chan struct{})
	var killer, merchants sync.WaitGroup
	killer.Go(func() { killRandomProcesses(t, g, stop) })
	for _, one := range payments {
		merchants.Go(func() { retryUntilAccepted(t, g, one) })
	}
	time.Sleep(killRunAfter)
	killAndRestart(t, p, g, port)
	time.Sleep(killRunAfter)
	close(stop)
	killer.Wait()
	merchants.Wait()
	for _, one := range payments {
		t.Run(one.order+" "+one.msisdn, func(t *testing.T) {
			t.Parallel()
			one.checkFinal(t, g)
		})
	}
}

// newPayments returns payments with all test numbers.
func newPayments(g *target) []payment {
	ends := []struct{ digits, status string }{
		{"2000", "successful"}, {"1001", "failed"}, {"1006", "successful"}, {"1011", "successful"},
		{"1005", "successful"},
		{"1008", "successful"}, {"1002", "failed"}, {"1007", "successful"}, {"1010", "successful"},
		{"2000", "successful"},
	}
	var all []payment
	for i := range inFlightCount {
		end := ends[i%len(ends)]
		all = append(all, payment{g.Merchant + "_" + g.newID(), "+225070000" + end.digits, end.status})
	}
	return all
}

// killRandomProcesses kills a random function process at each interval.
func killRandomProcesses(t *testing.T, g *target, stop <-chan struct{}) {
	killed := 0
	for {
		select {
		case <-stop:
			t.Logf("killed %d processes", killed)
			return
		case <-time.After(killInterval):
		}
		now, err := readTarget(g.path)
		if err != nil {
			continue // the whole run is down
		}
		var all []int
		for _, processes := range now.PIDs.Functions {
			all = append(all, processes...)
		}
		if len(all) == 0 {
			continue
		}
		err = syscall.Kill(all[rand.IntN(len(all))], syscall.SIGKILL)
		if err == nil {
			killed++
		} else if !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
}

// retryUntilAccepted retries a payment until it is accepted. A killed function's response is 504 (decision
// "error-shape").
func retryUntilAccepted(t *testing.T, g *target, one payment) { retryFor(t, g, one, 70*time.Second) }

// retryFor is retryUntilAccepted with another limit.
func retryFor(t *testing.T, g *target, one payment, limit time.Duration) {
	for started := time.Now(); time.Since(started) < limit; time.Sleep(5 * pollInterval) {
		response, err := g.send(newPayment(g.MerchantCredentials, one.order, "ussd", one.msisdn))
		if err != nil {
			continue // the whole run is down
		}
		final := response.status == http.StatusConflict &&
			response.header.Get("Retry-After") == "" // decision "pay-repeat"
		switch {
		case response.status == http.StatusCreated || final:
			return
		case response.header.Get("Retry-After") != "":
		case response.status == http.StatusInternalServerError:
		default:
			t.Error(response.errorf("a response that a merchant can neither use nor retry"))
			return
		}
	}
	t.Errorf("%s got no response", one.order)
}

// checkFinal waits for the final status, the notification and the effects of a payment.
func (p payment) checkFinal(t *testing.T, g *target) {
	eventuallyNoError(t, notificationTimeout, func() error { return g.checkStatus(p.order, p.status) })
	checkNotifiedOnce(t, g, p.order, p.status)
	expected := 0
	if p.status == "successful" {
		expected = 1
	}
	eventuallyNoError(t, notificationTimeout, func() error {
		for _, kind := range []string{"payment", "sms"} {
			found, err := g.effectsOf(p.order, kind)
			if err != nil {
				return err
			}
			if len(found) > expected {
				t.Fatalf("%d effects of the kind %s, want at most one: %+v", len(found), kind, found)
			}
			if len(found) < expected {
				return fmt.Errorf("%d effects of the kind %s, want %d", len(found), kind, expected)
			}
		}
		return nil
	})
}
