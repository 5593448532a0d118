package e2e

import (
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/proof/kits/localtest"
)

// The load of TestOnePlatformHangs: 20 payments a second, in turn to four platforms. A local run has 10 processes of a
// function, so its circuits have that concurrency.
const (
	hangRequestEvery = 50 * time.Millisecond
	hangShare        = 4                // of the 10 processes
	hangHealthy      = 4 * time.Second  // before the platform hangs
	hangTime         = 14 * time.Second // then it is back
	hangReaction     = 10 * time.Second // after that only the share waits
	hangReturn       = 30 * time.Second // after it is back
	// refusalTime bounds the quicker half of the refusals, and slowestNormal the p99 of the others beside the rule of
	// 1.5 times: other programs run on the machine.
	refusalTime   = 50 * time.Millisecond
	slowestNormal = 500 * time.Millisecond
)

// hangPlatforms are the platforms. The first one hangs.
var hangPlatforms = []stubPlatform{
	{operator: "mtn", country: "CI", channel: "ussd", currency: "XOF", numbers: "+225050000"},
	{operator: "moov", country: "BF", channel: "ussd", currency: "XOF", numbers: "+2267000"},
	{operator: "orange", country: "CM", channel: "ussd", currency: "XAF", numbers: "+23769000"},
	{operator: "wave", country: "SN", channel: "web", currency: "XOF", numbers: "+22177000"},
}

// hangPayment is one payment of the load.
type hangPayment struct {
	platform int
	at, took time.Duration // at: since the platform hangs
	waiting  int64         // payments at the platform that hangs which had no response
	response observation
}

func (p *hangPayment) isRefused() bool {
	return p.response.header.Get("X-Error-Reason") == "circuit-open"
}

// hangLoad sends payments.
type hangLoad struct {
	*testing.T
	target   *target
	hangs    time.Time
	waiting  atomic.Int64
	group    sync.WaitGroup
	payments []*hangPayment
	isBack   atomic.Bool // a payment at the platform succeeded after it was back
}

// Real processes, one of four platforms hangs (decision "circuit-breaker"): the others are served, at most its
// share of the processes wait for the platform. Its merchants get 503 at once, and it is served again after it is back.
// The same load without circuits shows what they save.
func TestOnePlatformHangs(t *testing.T) {
	if os.Getenv("E2E_HANG") == "" {
		t.Skip("compares times, so it runs without other tests: make hang")
	}
	t.Run("with circuits", func(t *testing.T) { runHang(t, "10", hangTime+hangReturn).check() })
	t.Run("without circuits", func(t *testing.T) { runHang(t, "0", hangTime).checkLoss() })
}

// runHang sends the load to a new local run whose circuits have a concurrency; 0 for none. It ends when the platform is
// back and serves, at the latest after a time since it hangs.
func runHang(t *testing.T, concurrency string, latest time.Duration) *hangLoad {
	e := newCtlSession(t, localtest.Options{
		Stubs: true, EnvOverrides: map[string]string{"ACCOUNT_CONCURRENCY": concurrency, "OPERATOR_SHARE": "40"},
	})
	l := &hangLoad{T: t, target: e.target}
	for platform := range hangPlatforms { // each starts its first process, token and connection
		l.send(platform, "2000", &hangPayment{})
	}
	l.group.Wait()
	l.hangs = time.Now().Add(hangHealthy)
	end := l.hangs.Add(latest)
	ticker := time.NewTicker(hangRequestEvery)
	defer ticker.Stop()
	for number := 0; time.Now().Before(end) && !l.isBack.Load(); number++ {
		<-ticker.C
		p := &hangPayment{platform: number % len(hangPlatforms), at: time.Since(l.hangs)}
		ending := "2000"
		if p.platform == 0 && 0 <= p.at && p.at < hangTime {
			ending = "1004" // no response
		}
		l.payments = append(l.payments, p)
		l.send(p.platform, ending, p)
	}
	l.group.Wait()
	return l
}

// send sends a payment in a goroutine of its own.
func (l *hangLoad) send(platform int, ending string, p *hangPayment) {
	s := stubStory{l.T, l.target, hangPlatforms[platform]}
	order := l.target.Merchant + "_" + l.target.newID()
	request, err := s.newPayment(order, s.platform.numbers+ending).build(l.target.BaseURL)
	if err != nil {
		l.Fatal(err)
	}
	if platform == 0 {
		l.waiting.Add(1)
	}
	p.waiting = l.waiting.Load()
	began := time.Now()
	l.group.Go(func() {
		client := newClient()
		client.Timeout = time.Minute
		p.response = mustExchange(l.T, client, request)
		p.took = time.Since(began)
		if platform == 0 {
			l.waiting.Add(-1)
			l.isBack.CompareAndSwap(false, p.at >= hangTime && p.response.status == http.StatusCreated)
		}
	})
}

// check checks what the load showed.
func (l *hangLoad) check() {
	count, lost, refused := 0, 0, 0
	var healthy, later, refusals []time.Duration
	waiting := int64(0)
	for _, p := range l.payments {
		isLater := p.at >= hangReaction && p.at < hangTime
		if isLater {
			waiting = max(waiting, p.waiting)
		}
		switch {
		case p.platform == 0 && p.isRefused():
			refused++
			refusals = append(refusals, p.took)
		case p.platform == 0:
		case p.response.status != http.StatusCreated:
			lost++
			l.Log(p.response.errorf("a payment at %s, %s after another platform hung",
				hangPlatforms[p.platform].operator, p.at))
		case p.at < 0:
			healthy = append(healthy, p.took)
		case isLater:
			later = append(later, p.took)
		}
		if p.platform != 0 {
			count++
		}
	}
	if len(healthy) == 0 || len(later) == 0 || len(refusals) == 0 {
		l.Fatalf("%d healthy payments, %d later ones, %d refusals", len(healthy), len(later), len(refusals))
	}
	normal, hung := p99(healthy), p99(later)
	slices.Sort(refusals)
	l.Logf("%d of %d payments of the others succeed; p99 %s, and %s while the platform hangs", count-lost, count,
		normal, hung)
	l.Logf("%d processes wait for it; %d refusals, half of them within %s", waiting, refused, refusals[len(refusals)/2])
	if lost*1000 > count {
		l.Errorf("%d of %d payments of the others are lost", lost, count)
	}
	if hung > max(normal*3/2, slowestNormal) {
		l.Errorf("p99 of the others is %s while the platform hangs, and %s before", hung, normal)
	}
	if waiting > hangShare {
		l.Errorf("%d processes wait for the platform that hangs after %s", waiting, hangReaction)
	}
	if refusals[len(refusals)/2] > refusalTime {
		l.Errorf("half of the refusals take longer than %s", refusals[len(refusals)/2])
	}
	if !l.isBack.Load() {
		l.Errorf("the platform is not served %s after it is back", hangReturn)
	}
}

// p99 returns the 99th percentile.
func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

// checkLoss checks that the load without circuits loses payments of the other platforms.
func (l *hangLoad) checkLoss() {
	count, lost := 0, 0
	for _, p := range l.payments {
		if p.platform != 0 && 0 <= p.at && p.at < hangTime {
			count++
			if p.response.status != http.StatusCreated {
				lost++
			}
		}
	}
	l.Logf("%d of %d payments of the others are lost while the platform hangs", lost, count)
	if lost*10 < count {
		l.Error("the load does not need circuits: it proves nothing about them")
	}
}
