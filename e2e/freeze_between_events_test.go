package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

const (
	// slowServers is the number of servers that are too slow for the relay, and frozenRounds how many orders each gets.
	slowServers  = 6
	frozenRounds = 2
	// slowResponse is their response time: above the time that the relay has, and below that of a slow attempt.
	slowResponse = 2800 * time.Millisecond
	// mostDuplicates is what a relay that continued after its return had. Usually each slow server gets one, because it
	// is cut off once. A busy machine may be too late to store that it is slow.
	mostDuplicates = 9
	// sweptWithin bounds the time until the sweep has delivered: the fast lease, a run each second, and the response.
	sweptWithin = 2 * time.Minute
)

// slowServer is a merchant's server that responds 204 late, and counts the posts of each notification.
type slowServer struct {
	*httptest.Server
	mutex sync.Mutex
	posts map[string]int // by webhook-id
}

// newSlowServer starts a server.
func newSlowServer(t *testing.T, wait time.Duration) *slowServer {
	t.Helper()
	m := &slowServer{posts: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mutex.Lock()
		m.posts[r.Header.Get("Webhook-Id")]++
		m.mutex.Unlock()
		time.Sleep(wait)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(m.Close)
	return m
}

// duplicates counts the posts beside the first one of each notification.
func (m *slowServer) duplicates() (count int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, posts := range m.posts {
		count += posts - 1
	}
	return count
}

// TestFreezeBetweenEvents stops the functions' real processes between two events, as Lambda does. Nothing of the relay
// may need the time between them. It leaves the notifications of a server that is too slow to the sweep. The first one
// arrives twice. A quick server gets each of its notifications once, at once.
func TestFreezeBetweenEvents(t *testing.T) {
	requireLocalRun(t)
	if testing.Short() {
		t.Skip("the sweep delivers after 60 seconds, twice")
	}
	t.Parallel()
	run := localtest.Start(t, localtest.Options{Freeze: true})
	g := mustReadTarget(t, filepath.Join(run.Dir, "run.json"))
	environment := run.Environment()
	entries := ledgerdynamo.New(newAWSClient(t, environment).DynamoDB(), environment["LEDGER_TABLE"])
	quick := newSlowServer(t, 0)
	var slow []*slowServer
	for range slowServers {
		slow = append(slow, newSlowServer(t, slowResponse))
	}
	for round := range frozenRounds {
		sent, orders := time.Now(), []string{}
		for _, m := range slow {
			orders = append(orders, startPayment(t, g, m.URL+"/hook", successfulMSISDN))
		}
		startPayment(t, g, quick.URL+"/hook", successfulMSISDN)
		eventuallyNoError(t, notificationTimeout, quick.has(round+1))
		t.Logf("round %d: the quick server was notified %s after the requests", round+1, time.Since(sent))
		for _, order := range orders {
			eventuallyNoError(t, sweptWithin, func() error {
				e, err := entries.Get(t.Context(), ledger.Key{Kind: ledger.Payment, ID: order})
				if err == nil && len(e.Outbox.Delivered) == 0 {
					err = fmt.Errorf("%s is not notified: %+v", order, e.Outbox)
				}
				return err
			})
		}
	}
	total := 0
	for _, m := range slow {
		total += m.duplicates()
	}
	t.Logf("%d servers of %s, %d notifications each: %d duplicates", slowServers, slowResponse, frozenRounds, total)
	if total > mostDuplicates {
		t.Errorf("%d duplicates, want %d at most", total, mostDuplicates)
	}
	if count := quick.duplicates(); count > 0 {
		t.Errorf("%d duplicates at the quick server", count)
	}
}

// has returns a check that a server has got a number of notifications.
func (m *slowServer) has(count int) func() error {
	return func() error {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		if len(m.posts) != count {
			return fmt.Errorf("%d notifications, want %d", len(m.posts), count)
		}
		return nil
	}
}
