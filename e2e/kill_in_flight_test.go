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
	// inFlightCount is how many payments are under way when processes die.
	inFlightCount = 50
	// killEvery is how often one of the functions' processes dies meanwhile.
	killEvery = 150 * time.Millisecond
	// killRunAfter is when the whole run dies.
	killRunAfter = 3 * time.Second
)

// killAndRestart kills -9 the whole run, sees that nothing of it lives on, and starts it again on the same ports and folder.
func killAndRestart(t *testing.T, p *makeProcess, g *target, port string) {
	t.Helper()
	before := mustReadTarget(t, g.path).PIDs
	if err := syscall.Kill(before.Run, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitExit(t, 10*time.Second)
	waitGone(t, before.list())
	startMakeRun(t, p.dir, port, "SPEED=60").waitReady(t)
}

// payment is one of those under way, with what it must come to.
type payment struct {
	order, msisdn, status string
}

// TestKillWithPaymentsInFlight kills -9 any of the functions' processes at any time under 50 payments in flight, and the whole run
// in the midst of it. Every payment becomes final all the same, every merchant is told, with one effect each.
func TestKillWithPaymentsInFlight(t *testing.T) {
	requireLocalRun(t)
	if testing.Short() {
		t.Skip("what a killed relay leaves is the sweep's after 60 seconds")
	}
	t.Parallel()
	dir, port := newRunDir(t), "PORT="+freePorts(t)
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

// newPayments mixes the outcomes on demand.
func newPayments(g *target) []payment {
	ends := []struct{ digits, status string }{
		{"2000", "successful"}, {"1001", "failed"}, {"1006", "successful"}, {"1011", "successful"}, {"1005", "successful"},
		{"1008", "successful"}, {"1002", "failed"}, {"1007", "successful"}, {"1010", "successful"}, {"2000", "successful"},
	}
	var all []payment
	for i := range inFlightCount {
		end := ends[i%len(ends)]
		all = append(all, payment{g.Merchant + "_" + g.newID(), "+225070000" + end.digits, end.status})
	}
	return all
}

// killRandomProcesses kills a process every now and then, whichever it is.
func killRandomProcesses(t *testing.T, g *target, stop <-chan struct{}) {
	killed := 0
	for {
		select {
		case <-stop:
			t.Logf("killed %d processes", killed)
			return
		case <-time.After(killEvery):
		}
		now, err := readTarget(g.path)
		if err != nil {
			continue // the run itself is down
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

// retryUntilAccepted is a merchant who asks until there is an answer. A killed function's answer is 504 (decision "error-shape").
func retryUntilAccepted(t *testing.T, g *target, one payment) {
	client := newClient()
	for started := time.Now(); time.Since(started) < 70*time.Second; time.Sleep(5 * pollEvery) {
		request, err := newPayment(g.merchantCredentials, one.order, "ussd", one.msisdn).build(g.BaseURL)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := exchange(client, request)
		if err != nil {
			continue // the run itself is down
		}
		final := response.status == http.StatusConflict && response.header.Get("Retry-After") == "" // decision "pay-repeat"
		switch {
		case response.status == http.StatusCreated || final:
			return
		case response.header.Get("Retry-After") != "":
		case response.status == http.StatusInternalServerError:
		default:
			t.Error(response.errorf("no answer that a merchant can go on with"))
			return
		}
	}
	t.Errorf("%s has no answer", one.order)
}

// checkFinal waits for the end of a payment.
func (p payment) checkFinal(t *testing.T, g *target) {
	check := newRequestBuilder(g.merchantCredentials, http.MethodGet, "/mobilemoney/v1/getStatus/"+p.order)
	check.body = nil
	eventually(t, notificationTimeout, func() (struct{}, error) {
		request, err := check.build(g.BaseURL)
		if err != nil {
			return struct{}{}, err
		}
		response, err := exchange(newClient(), request)
		if err != nil {
			return struct{}{}, err
		}
		if status, _ := response.textValue("status"); status != p.status {
			return struct{}{}, response.errorf("not %s yet", p.status)
		}
		return struct{}{}, nil
	})
	checkNotifiedOnce(t, g, p.order, p.status)
	expected := 0
	if p.status == "successful" {
		expected = 1
	}
	eventually(t, notificationTimeout, func() (struct{}, error) {
		for _, kind := range []string{"payment", "sms"} {
			found, err := g.effectsOf(p.order, kind)
			if err != nil {
				return struct{}{}, err
			}
			if len(found) > expected {
				t.Fatalf("%d effects of %s: %+v", len(found), kind, found)
			}
			if len(found) < expected {
				return struct{}{}, fmt.Errorf("%d effects of %s, want %d", len(found), kind, expected)
			}
		}
		return struct{}{}, nil
	})
}
