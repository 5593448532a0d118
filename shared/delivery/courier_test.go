package delivery_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/webhook"
)

// attempt makes one attempt, the made-th, on an entry's head, and gives the entry as it is then.
func attempt(t *testing.T, k *deliverytest.Kit, e *ledger.Entry, made int) *ledger.Entry {
	t.Helper()
	to, err := k.Courier.Endpoint(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	line := telemetry.New("sweep", k.Clock.Now())
	changed := e.Clone()
	k.Courier.Post(context.Background(), e, *e.Head(), made, to, line)(changed)
	if err := line.Write(k.Lines); err != nil {
		t.Fatal(err)
	}
	return changed
}

func endpoint(k *deliverytest.Kit) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: k.Shop.URL + "/demo"}
}

// The signature holds with the official library of Standard Webhooks, under both live secrets.
func TestSigned(t *testing.T) {
	k := deliverytest.New(t)
	e := k.Final("DemoShop_1", ledger.Successful)
	told := attempt(t, k, e, 1)
	posts := k.Shop.Posts("/demo")
	if len(posts) != 1 || len(told.Outbox) != 0 || len(told.Told) != 1 {
		t.Fatalf("%d posts, %+v", len(posts), told)
	}
	post := posts[0]
	for _, version := range []int{1, 2} {
		verifier, err := official.NewWebhook(deliverytest.Secret("demo0001", version))
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.VerifyIgnoringTimestamp([]byte(post.Body), post.Header); err != nil {
			t.Errorf("secret %d: %v", version, err)
		}
		if verifier.VerifyIgnoringTimestamp([]byte(post.Body+" "), post.Header) == nil {
			t.Errorf("secret %d: another body holds as well", version)
		}
	}
	stranger, err := official.NewWebhook(deliverytest.Secret("othr0002", 1))
	if err != nil || stranger.VerifyIgnoringTimestamp([]byte(post.Body), post.Header) == nil {
		t.Errorf("another merchant's secret holds, %v", err)
	}
	if post.ID() != ledger.NotificationID(e.Key, ledger.Successful) || post.Header.Get("webhook-timestamp") != strconv.FormatInt(k.Clock.Now().Unix(), 10) {
		t.Errorf("header %v", post.Header)
	}
	operationtest.Golden(t, "testdata/notification.json", []byte(post.Body))
}

func TestBody(t *testing.T) {
	k := deliverytest.New(t)
	web := k.Final("DemoShop_2", ledger.Cancelled, func(e *ledger.Entry) { e.Channel, e.NotifToken, e.MSISDN = "web", "nt", "" })
	operationtest.Golden(t, "testdata/notification-web.json", delivery.Body(web, *web.Head()))
	message := k.Message("m-1", ledger.DeliveredToNetwork)
	message.CallbackData = ""
	operationtest.Golden(t, "testdata/receipt.json", delivery.Body(message, *message.Head()))
}

func TestWhatAnAnswerDoes(t *testing.T) {
	last := len(webhook.DefaultSchedule())
	cases := []struct {
		name     string
		status   int
		header   []string
		made     int
		next     time.Duration // the least wait; 0 for none
		most     time.Duration
		dead     string
		parked   bool
		failures int
	}{
		{"500", 500, nil, 1, 4 * time.Second, 6 * time.Second, "", false, 1},
		{"301 is not followed", 301, []string{"Location", "http://127.0.0.1:1/"}, 1, 4 * time.Second, 6 * time.Second, "", false, 1},
		{"429 with Retry-After", 429, []string{"Retry-After", "3600"}, 1, time.Hour, time.Hour, "", false, 1},
		{"429 with a short Retry-After", 429, []string{"Retry-After", "1"}, 2, 4 * time.Minute, 6 * time.Minute, "", false, 1},
		{"502 with Retry-After", 502, []string{"Retry-After", "7200"}, 1, 2 * time.Hour, 2 * time.Hour, "", false, 1},
		{"504 with Retry-After of a week", 504, []string{"Retry-After", "604800"}, 1, 24 * time.Hour, 24 * time.Hour, "", false, 1},
		{"503 does not ask for a wait", 503, []string{"Retry-After", "7200"}, 1, 4 * time.Second, 6 * time.Second, "", false, 1},
		{"the ninth", 500, nil, 9, 24 * 48 * time.Minute, 24 * 72 * time.Minute, "", false, 1},
		{"the last", 500, nil, last, 0, 0, webhook.WhyServer, false, 1},
		{"the last with Retry-After", 429, []string{"Retry-After", "60"}, last, 0, 0, webhook.WhyThrottled, false, 1},
		{"410", 410, nil, 1, 0, 0, "", true, 0},
		{"410 at the last", 410, nil, last, 0, 0, "", true, 0},
		{"200", 200, nil, 1, 0, 0, "", false, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			k.Shop.Answers("/demo", c.status, c.header...)
			e := attempt(t, k, k.Final("DemoShop_1", ledger.Failed), c.made)
			failed := c.status >= 300
			if (len(e.Outbox) == 1) != failed || k.Lines.Sum("DeliveryFailures")+k.Lines.Sum("Delivered") != 1 {
				t.Fatalf("outbox %+v, lines %s", e.Outbox, k.Lines)
			}
			if health := k.Health.Of(endpoint(k)); health.Failures != c.failures || health.Enabled() == c.parked {
				t.Errorf("health %+v", health)
			}
			if !failed {
				return
			}
			head := e.Head()
			if head.Dead != c.dead || head.Parked != c.parked || head.LastCode != c.status || head.LastWhy == "" || head.Attempt != c.made {
				t.Errorf("head %+v", head)
			}
			if (k.Lines.Sum("DeadLetters") == 1) != (c.dead != "") {
				t.Errorf("lines %s", k.Lines)
			}
			if c.next == 0 && !e.Due.IsZero() {
				t.Errorf("due at %s", e.Due)
			}
			if wait := head.Next.Sub(k.Clock.Now()); c.next > 0 && (wait < c.next || wait > c.most) {
				t.Errorf("waits %s", wait)
			}
		})
	}
}

// Failures side by side each count, so that five of them close the fast path however they race.
func TestHealthOfParallelFailures(t *testing.T) {
	k := deliverytest.New(t)
	k.Shop.Answers("/demo", 500)
	var group sync.WaitGroup
	for i := range 5 {
		e := k.Final("DemoShop_"+strconv.Itoa(i), ledger.Failed)
		group.Go(func() { attempt(t, k, e, 1) })
	}
	group.Wait()
	if health := k.Health.Of(endpoint(k)); health.Failures != 5 || health.FastPath() {
		t.Errorf("%+v", health)
	}
	writes := k.Health.Writes()
	attempt(t, k, k.Final("DemoShop_9", ledger.Failed), 1)
	if k.Health.Writes() != writes {
		t.Error("one more failure of a closed endpoint was stored")
	}
	k.Shop.Answers("/demo", 200)
	attempt(t, k, k.Final("DemoShop_10", ledger.Failed), 1)
	if health := k.Health.Of(endpoint(k)); health.Failures != 0 || !health.FastPath() {
		t.Errorf("after a success %+v", health)
	}
}

// A success among successes writes no health at all.
func TestHealthCostsNothingWhileAllIsWell(t *testing.T) {
	k := deliverytest.New(t)
	attempt(t, k, k.Final("DemoShop_1", ledger.Failed), 1)
	if k.Health.Writes() != 0 {
		t.Errorf("%d writes", k.Health.Writes())
	}
}

// A 410 that meets another attempt's write is applied to it; one that cannot be stored is a failure like others, for
// what is parked at an enabled endpoint would never be queued again.
func TestA410IsNeverLost(t *testing.T) {
	k := deliverytest.New(t)
	e := k.Final("DemoShop_1", ledger.Failed)
	to, err := k.Courier.Endpoint(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	k.Shop.Handle("/demo", func(w http.ResponseWriter, _ *http.Request) {
		k.Health.Set(webhook.Health{Endpoint: endpoint(k), Version: 3, DisabledVersion: 3, Failures: 2})
		w.WriteHeader(410)
	})
	line := telemetry.New("sweep", k.Clock.Now())
	k.Courier.Post(context.Background(), e, *e.Head(), 1, to, line)(e)
	if health := k.Health.Of(endpoint(k)); health.Enabled() || health.Failures != 2 || !e.Head().Parked {
		t.Errorf("health %+v, head %+v", health, e.Head())
	}

	k = deliverytest.New(t)
	k.Shop.Answers("/demo", 410)
	e = k.Final("DemoShop_1", ledger.Failed)
	if to, err = k.Courier.Endpoint(context.Background(), e); err != nil {
		t.Fatal(err)
	}
	k.Health.Fail(errors.New("down"))
	k.Courier.Post(context.Background(), e, *e.Head(), 1, to, line)(e)
	if head := e.Head(); head.Parked || head.Next.IsZero() || head.LastWhy != webhook.WhyGone {
		t.Errorf("head %+v", head)
	}
}

// Whatever an attempt needs is fetched before it is claimed.
func TestEndpoint(t *testing.T) {
	ctx := context.Background()
	k := deliverytest.New(t)
	e := k.Final("DemoShop_1", ledger.Failed)
	failure := errors.New("table down")
	k.Profiles.Fail(failure)
	if _, err := k.Courier.Endpoint(ctx, e); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	k.Profiles.Fail(nil)
	if _, err := k.Courier.Endpoint(ctx, e); err == nil {
		t.Error("an unknown merchant is no error")
	}
	k.Health.Set(webhook.Health{Endpoint: endpoint(k), Version: 1, DisabledAt: k.Clock.Now()})
	if to, err := k.Courier.Endpoint(ctx, e); err != nil || to.Enabled() {
		t.Errorf("a disabled endpoint needs no secrets: %+v, %v", to, err)
	}
	k.Health.Fail(failure)
	if _, err := k.Courier.Endpoint(ctx, e); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	if len(k.Shop.Posts("")) != 0 {
		t.Error("something was sent")
	}
}

// A server that answers at once and then drips does not hold the fast path up.
func TestADrippingAnswer(t *testing.T) {
	k := deliverytest.New(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	k.Shop.Handle("/demo", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-over
	})
	began := time.Now()
	told := attempt(t, k, k.Final("DemoShop_1", ledger.Failed), 1)
	if len(told.Told) != 1 || time.Since(began) > 5*time.Second {
		t.Errorf("%+v after %s", told.Outbox, time.Since(began))
	}
}

// decision "notifications": a merchant with a URL for each order closes its server's fast path as any other does; a 410
// is about its own URL alone.
func TestHealthOfAURLForEachOrder(t *testing.T) {
	k := deliverytest.New(t)
	order := func(i int) *ledger.Entry {
		path := "/orders/" + strconv.Itoa(i)
		k.Shop.Answers(path, 500)
		return k.Final("DemoShop_"+strconv.Itoa(i), ledger.Failed, func(e *ledger.Entry) { e.NotifyURL = k.Shop.URL + path })
	}
	for i := range 5 {
		attempt(t, k, order(i), 1)
	}
	next, err := k.Courier.Endpoint(context.Background(), order(6))
	if err != nil || next.FastPath() || !next.Enabled() {
		t.Errorf("after five failures at five URLs: %+v, %v", next, err)
	}
	k.Shop.Answers("/orders/7", 410)
	attempt(t, k, k.Final("DemoShop_7", ledger.Failed, func(e *ledger.Entry) { e.NotifyURL = k.Shop.URL + "/orders/7" }), 1)
	for path, enabled := range map[string]bool{"/orders/7": false, "/orders/8": true} {
		e := k.Final("DemoShop_8", ledger.Failed, func(e *ledger.Entry) { e.NotifyURL = k.Shop.URL + path })
		if to, err := k.Courier.Endpoint(context.Background(), e); err != nil || to.Enabled() != enabled {
			t.Errorf("%s is enabled: %v, %v", path, to.Enabled(), err)
		}
	}
}
