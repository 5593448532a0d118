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
	// inFlight is how many payments are under way when processes die.
	inFlight = 50
	// killEvery is how often one of the functions' processes dies meanwhile.
	killEvery = 150 * time.Millisecond
	// killRunAfter is when the whole run dies.
	killRunAfter = 3 * time.Second
)

// restart kills -9 the whole run, sees that nothing of it lives on, and starts it again on the same ports and folder.
func restart(t *testing.T, p *program, g *target, port string) {
	t.Helper()
	before := mustRead(t, g.path).PIDs
	if err := syscall.Kill(before.Run, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.ends(t, 10*time.Second)
	gone(t, before.all())
	makeRun(t, p.dir, port, "SPEED=60").answering(t)
}

// payment is one of those under way, with what it must come to.
type payment struct {
	order, msisdn, status string
}

// TestKilledInFlight kills -9 any of the functions' processes at any time under 50 payments in flight, and the whole run
// in the midst of it. Every payment becomes final all the same, every merchant is told, with one effect each.
func TestKilledInFlight(t *testing.T) {
	needsLocal(t)
	if testing.Short() {
		t.Skip("what a killed relay leaves is the sweep's after 60 seconds")
	}
	t.Parallel()
	dir, port := newDir(t), "PORT="+freePorts(t)
	p := makeRun(t, dir, port, "SPEED=60")
	g := p.answering(t)
	payments := newPayments(g)
	stop := make(chan struct{})
	var killer, merchants sync.WaitGroup
	killer.Go(func() { killSome(t, g, stop) })
	for _, one := range payments {
		merchants.Go(func() { patient(t, g, one) })
	}
	time.Sleep(killRunAfter)
	restart(t, p, g, port)
	time.Sleep(killRunAfter)
	close(stop)
	killer.Wait()
	merchants.Wait()
	for _, one := range payments {
		t.Run(one.order+" "+one.msisdn, func(t *testing.T) {
			t.Parallel()
			one.judge(t, g)
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
	for i := range inFlight {
		end := ends[i%len(ends)]
		all = append(all, payment{g.Merchant + "_" + g.newID(), "+225070000" + end.digits, end.status})
	}
	return all
}

// killSome kills a process every now and then, whichever it is.
func killSome(t *testing.T, g *target, stop <-chan struct{}) {
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

// patient is a merchant who asks until there is an answer. A killed function's answer is 504 (decision "error-shape").
func patient(t *testing.T, g *target, one payment) {
	client := newClient()
	for began := time.Now(); time.Since(began) < 70*time.Second; time.Sleep(5 * pollEvery) {
		request, err := newPayment(g.shop, one.order, "ussd", one.msisdn).request(g.BaseURL)
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := exchange(client, request)
		if err != nil {
			continue // the run itself is down
		}
		final := answer.status == http.StatusConflict && answer.header.Get("Retry-After") == "" // decision "pay-repeat"
		switch {
		case answer.status == http.StatusCreated || final:
			return
		case answer.header.Get("Retry-After") != "":
		case answer.status == http.StatusInternalServerError:
		default:
			t.Error(answer.wrong("no answer that a merchant can go on with"))
			return
		}
	}
	t.Errorf("%s has no answer", one.order)
}

// judge waits for the end of a payment.
func (p payment) judge(t *testing.T, g *target) {
	look := newAsk(g.shop, http.MethodGet, "/mobilemoney/v1/getStatus/"+p.order)
	look.body = nil
	eventually(t, toldWithin, func() (struct{}, error) {
		request, err := look.request(g.BaseURL)
		if err != nil {
			return struct{}{}, err
		}
		answer, err := exchange(newClient(), request)
		if err != nil {
			return struct{}{}, err
		}
		if status, _ := answer.text("status"); status != p.status {
			return struct{}{}, answer.wrong("not %s yet", p.status)
		}
		return struct{}{}, nil
	})
	tellOnce(t, g, p.order, p.status)
	wanted := 0
	if p.status == "successful" {
		wanted = 1
	}
	eventually(t, toldWithin, func() (struct{}, error) {
		for _, kind := range []string{"payment", "sms"} {
			found, err := g.effectsOf(p.order, kind)
			if err != nil {
				return struct{}{}, err
			}
			if len(found) > wanted {
				t.Fatalf("%d effects of %s: %+v", len(found), kind, found)
			}
			if len(found) < wanted {
				return struct{}{}, fmt.Errorf("%d effects of %s, want %d", len(found), kind, wanted)
			}
		}
		return struct{}{}, nil
	})
}
