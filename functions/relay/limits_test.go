package relay_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/functions/relay"
	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/webhook"
)

// longest is the longest duration of an invocation (decision "notifications").
const longest = 2500 * time.Millisecond

// stuck are the calls that hang until their context ends, by what they call.
type stuck struct {
	merchantServer, operator, readHealth, saveHealth, profile, ledger bool
	running                                                           atomic.Int64 // calls that hang
}

// hang waits until a call is given up.
func (h *stuck) hang(ctx context.Context) error {
	h.running.Add(1)
	defer h.running.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

// These are the relay's parts that may hang.
type (
	stuckOperator struct {
		*deliverytest.Operator
		*stuck
	}
	stuckHealth struct {
		webhook.HealthStore
		*stuck
	}
	stuckProfiles struct {
		*deliverytest.ProfileStore
		*stuck
	}
	stuckLedger struct {
		ledger.Writer
		*stuck
	}
)

func (o stuckOperator) SendUserSMS(ctx context.Context, call operator.UserSMSCall) operator.Result {
	if o.operator {
		_ = o.hang(ctx)
		return operator.Result{}
	}
	return o.Operator.SendUserSMS(ctx, call)
}

func (h stuckHealth) Health(ctx context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	if h.readHealth {
		return webhook.Health{}, h.hang(ctx)
	}
	return h.HealthStore.Health(ctx, endpoint)
}

func (h stuckHealth) SaveHealth(ctx context.Context, health webhook.Health) (bool, error) {
	if h.saveHealth {
		return false, h.hang(ctx)
	}
	return h.HealthStore.SaveHealth(ctx, health)
}

func (p stuckProfiles) Profile(ctx context.Context, id string) (*merchant.Profile, error) {
	if p.profile {
		return nil, p.hang(ctx)
	}
	return p.ProfileStore.Profile(ctx, id)
}

func (l stuckLedger) Replace(ctx context.Context, e *ledger.Entry, t ledger.Transition) (*ledger.Entry, error) {
	if l.ledger {
		return nil, l.hang(ctx)
	}
	return l.Writer.Replace(ctx, e, t)
}

// transport serves the posts in the bubble of a test. A server responds after the time in its name, or not at all.
type transport struct {
	*stuck
	mutex sync.Mutex
	posts map[string]int // by host
}

// The hosts that are no durations: one does not respond, and the function freezes while the other responds.
const (
	hangingHost = "hangs"
	frozenHost  = "freezes"
)

func (n *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	host := request.URL.Hostname()
	n.mutex.Lock()
	n.posts[host]++
	n.mutex.Unlock()
	if n.merchantServer || strings.HasPrefix(host, hangingHost) {
		return nil, n.hang(request.Context())
	}
	wait, _ := time.ParseDuration(strings.TrimPrefix(host, "after-")) // 0 for other names
	ended := request.Context().Done()
	if host == frozenHost {
		wait, ended = 30*time.Second, nil
	}
	select {
	case <-ended:
		return nil, request.Context().Err()
	case <-time.After(wait):
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
}

// newStuckFixture returns a relay with the shipped limits, all of whose outside calls may hang. Use it in a bubble.
func newStuckFixture(t *testing.T) (*relayFixture, *stuck, *transport) {
	t.Helper()
	h, o := &stuck{}, &deliverytest.Operator{}
	k := deliverytest.NewWithDriver(t, o, stuckOperator{o, h})
	k.Courier.Health, k.Courier.Profiles = stuckHealth{k.HealthStore, h}, stuckProfiles{k.ProfileStore, h}
	k.Book.Store = stuckLedger{k.Book.Store, h}
	limits := relay.ShippedLimits()
	k.Courier.HealthTimeout = limits.Store
	servers := &transport{stuck: h, posts: map[string]int{}}
	k.Courier.Sender = webhook.NewSender(outgoing.NewClient(outgoing.Policy{}, servers), 15*time.Second, time.Now)
	s := newFixtureOf(k)
	s.relay.Limits = limits
	return s, h, servers
}

// storeAt stores a failed payment that is notified at a server.
func (s *relayFixture) storeAt(id, host string) *ledger.Entry {
	return s.StoreFinalPayment(id, ledger.Failed, func(e *ledger.Entry) { e.Outbox.URL = "https://" + host + "/notif" })
}

func atHost(host string) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: "https://" + host + "/notif"}
}

// An invocation ends in time if any of its calls hangs, and none of them continues after it.
func TestInvocationEndsInTime(t *testing.T) {
	for name, c := range map[string]struct {
		hang func(*stuck)
		want time.Duration
	}{
		"nothing":               {func(*stuck) {}, 0},
		"the merchant's server": {func(h *stuck) { h.merchantServer = true }, 2 * time.Second},
		"the operator":          {func(h *stuck) { h.operator = true }, 2 * time.Second},
		"the read of health":    {func(h *stuck) { h.readHealth = true }, time.Second},
		"the profile":           {func(h *stuck) { h.profile = true }, time.Second},
		"the ledger":            {func(h *stuck) { h.ledger = true }, longest},
		"the server and its store": {func(h *stuck) {
			h.merchantServer, h.saveHealth = true, true
		}, 2250 * time.Millisecond},
		"all but the reads": {func(h *stuck) {
			h.merchantServer, h.operator, h.saveHealth, h.ledger = true, true, true, true
		}, longest},
	} {
		t.Run(name, func(t *testing.T) {
			s, h, _ := newStuckFixture(t)
			c.hang(h)
			e := s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
				e.Outbox.URL = "https://shop/notif"
			})
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s.relayEntries(t, e)
				if elapsed := time.Since(began); elapsed != c.want || h.running.Load() != 0 {
					t.Errorf("it lasted %s, want %s; %d calls continue", elapsed, c.want, h.running.Load())
				}
			})
		})
	}
}

// A post that is cut off spends no attempt and makes its server slow. The sweep posts it, at the time as before.
func TestPostCutOff(t *testing.T) {
	s, _, servers := newStuckFixture(t)
	e := s.storeAt("DemoShop_1", hangingHost)
	synctest.Test(t, func(t *testing.T) { s.relayEntries(t, e) })
	after := s.AssertEntry(t, e, failureQueued)
	if after.Version != e.Version || !after.DueAt.Equal(e.DueAt) {
		t.Errorf("version %d after %d, due %s, want %s", after.Version, e.Version, after.DueAt, e.DueAt)
	}
	health := s.HealthStore.Stored(atHost(hangingHost))
	if !health.Slow || health.Failures != 0 || health.AllowsFastPath() {
		t.Errorf("health %+v, want a slow server without failures", health)
	}
	if !strings.Contains(s.LogLines.String(), `"Outcome":"left-to-sweep"`) ||
		!strings.Contains(s.LogLines.String(), webhook.ErrCutOff.Error()) {
		t.Errorf("the line does not say why it is left to the sweep: %s", s.LogLines)
	}
	next := s.storeAt("DemoShop_2", hangingHost)
	synctest.Test(t, func(t *testing.T) { s.relayEntries(t, next) })
	if posts := servers.posts[hangingHost]; posts != 1 {
		t.Errorf("%d posts, want none to a slow server", posts)
	}
}

// An intermediate status whose post is cut off stays leased, and due as before.
func TestIntermediatePostCutOff(t *testing.T) {
	s, _, _ := newStuckFixture(t)
	e := s.StoreMessage("sms-1", ledger.DeliveredToNetwork)
	e.Outbox.URL = "https://" + hangingHost + "/notif"
	e = s.StoreEntry(e)
	synctest.Test(t, func(t *testing.T) { s.relayEntries(t, e) })
	after := s.MustGet(t, e)
	head := after.Outbox.Head()
	if head == nil || head.Attempts != 0 || after.Outbox.UnrecordedAttempts != 1 || !after.DueAt.Equal(e.DueAt) {
		t.Errorf("outbox %+v, due %s; want one unrecorded attempt, due %s", after.Outbox, after.DueAt, e.DueAt)
	}
}

// The payer's SMS that is cut off may have been sent. One write stores that, and the post's result.
func TestUserSMSCutOff(t *testing.T) {
	s, h, _ := newStuckFixture(t)
	h.operator = true
	e := s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
		e.Outbox.URL = "https://shop/notif"
	})
	synctest.Test(t, func(t *testing.T) { s.relayEntries(t, e) })
	want := successDelivered
	want.UserSMS, want.Due = ledger.UserSMSDue, true
	if after := s.AssertEntry(t, e, want); !after.UserSMS.MaybeSent || after.Version != e.Version+1 {
		t.Errorf("the SMS %+v, version %d after %d", after.UserSMS, after.Version, e.Version)
	}
}

// A server that is always slower than the relay waits is cut off once: the sweep's responses do not open its fast
// path. One that the relay can wait for is never cut off.
func TestServerSlowerThanTheRelay(t *testing.T) {
	for host, c := range map[string]struct{ posts, delivered int }{
		"after-900ms":  {4, 4},
		"after-1900ms": {4, 4},
		"after-2100ms": {1, 0},
		"after-2900ms": {1, 0},
		"after-10s":    {1, 0},
	} {
		t.Run(host, func(t *testing.T) {
			s, _, servers := newStuckFixture(t)
			delivered := 0
			for i := range 4 {
				e := s.storeAt(fmt.Sprint("DemoShop_", i), host)
				synctest.Test(t, func(t *testing.T) {
					s.relayEntries(t, e)
					if delivered += len(s.MustGet(t, e).Outbox.Delivered); delivered == 0 {
						s.postLikeSweep(t, e)
					}
				})
			}
			posts := servers.posts[host]
			if delivered == 0 {
				posts -= 4 // the sweep's
			}
			if posts != c.posts || delivered != c.delivered {
				t.Errorf("%d posts by the relay, %d delivered, want %d and %d", posts, delivered, c.posts, c.delivered)
			}
		})
	}
}

// postLikeSweep makes an attempt with the timeout of the sweep.
func (s *relayFixture) postLikeSweep(t *testing.T, e *ledger.Entry) {
	t.Helper()
	health, err := s.HealthStore.Health(t.Context(), webhook.Endpoint{MerchantID: e.Merchant.ID, URL: e.Outbox.URL})
	if err != nil {
		t.Fatal(err)
	}
	if result := s.Courier.Sender.Deliver(t.Context(), webhook.Request{
		URL: e.Outbox.URL, ID: "id", Secrets: []webhook.Secret{{}},
	}); result.Outcome != webhook.Delivered {
		t.Fatalf("%+v", result)
	} else if next, changed := health.AfterAttempt(result, s.Clock.Now()); changed {
		s.HealthStore.StoreHealth(next)
	}
}

// A healthy server's notification is delivered and stored before the servers of its batch that hang are cut off.
func TestHealthyBesideHanging(t *testing.T) {
	s, _, _ := newStuckFixture(t)
	quick := s.storeAt("DemoShop_1", "quick")
	batch := []*ledger.Entry{quick}
	for i := range 24 {
		batch = append(batch, s.storeAt(fmt.Sprint("DemoShop_1", i), fmt.Sprint(hangingHost, i)))
	}
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		group.Go(func() { s.relayEntries(t, batch...) })
		synctest.Wait()
		s.AssertDelivered(t, quick)
		group.Wait()
	})
}

// A merchant that uses a new server for each order, all of which hang, does not delay batch after batch. Others keep
// their fast path, and so does this one a minute later.
func TestManyHangingServers(t *testing.T) {
	s, _, servers := newStuckFixture(t)
	synctest.Test(t, func(t *testing.T) {
		relayOne := func(e *ledger.Entry) time.Duration {
			began := time.Now()
			s.relayEntries(t, e)
			return time.Since(began)
		}
		for i := range 12 {
			host := fmt.Sprint(hangingHost, i)
			wait := relayOne(s.storeAt(fmt.Sprint("DemoShop_", i), host))
			if isPosted := i < 8; (wait > 0) != isPosted || servers.posts[host] > 0 != isPosted {
				t.Errorf("server %d: it lasted %s, with %d posts", i, wait, servers.posts[host])
			}
		}
		relayOne(s.storeAt("DemoShop_20", "quick"))
		other := s.storeAt("OtherShop_1", "quick")
		other.Merchant.ID = "othr0002"
		other = s.StoreEntry(other)
		relayOne(other)
		s.AssertDelivered(t, other)
		s.Clock.Advance(time.Minute)
		later := s.storeAt("DemoShop_21", "quick")
		relayOne(later)
		s.AssertDelivered(t, later)
	})
	if servers.posts["quick"] != 2 {
		t.Errorf("%d posts to the quick server, want those of another merchant and of a minute later",
			servers.posts["quick"])
	}
}

// A function that was frozen during a post still stores its result, in a short time of its own.
func TestStoreAfterAFreeze(t *testing.T) {
	s, _, _ := newStuckFixture(t)
	e := s.storeAt("DemoShop_1", frozenHost)
	synctest.Test(t, func(t *testing.T) { s.relayEntries(t, e) })
	s.AssertDelivered(t, e)
}
