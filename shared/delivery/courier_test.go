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

// deliverOnce makes one attempt, the made-th, on an entry's head, and gives the entry as it is then.
func deliverOnce(t *testing.T, k *deliverytest.DeliveryFixture, e *ledger.Entry, attemptNumber int) *ledger.Entry {
	t.Helper()
	target, err := k.Courier.FindTarget(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	line := telemetry.NewLogLine("sweep", k.Clock.Now())
	changed := e.Clone()
	k.Courier.PostNotification(context.Background(), e, *e.OutboxHead(), attemptNumber, target, line)(changed)
	if err := line.Write(k.LogLines); err != nil {
		t.Fatal(err)
	}
	return changed
}

func webhookEndpoint(k *deliverytest.DeliveryFixture) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: k.MerchantServer.URL + "/demo"}
}

// The signature holds with the official library of Standard Webhooks, under both live secrets.
func TestNotificationIsSigned(t *testing.T) {
	k := deliverytest.New(t)
	e := k.StoreFinalPayment("DemoShop_1", ledger.Successful)
	delivered := deliverOnce(t, k, e, 1)
	posts := k.MerchantServer.Received("/demo")
	if len(posts) != 1 || len(delivered.Outbox) != 0 || len(delivered.Delivered) != 1 {
		t.Fatalf("%d posts, %+v", len(posts), delivered)
	}
	post := posts[0]
	for _, version := range []int{1, 2} {
		verifier, err := official.NewWebhook(deliverytest.WebhookSecret("demo0001", version))
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
	unknownMerchant, err := official.NewWebhook(deliverytest.WebhookSecret("othr0002", 1))
	if err != nil || unknownMerchant.VerifyIgnoringTimestamp([]byte(post.Body), post.Header) == nil {
		t.Errorf("another merchant's secret holds, %v", err)
	}
	if post.ID() != ledger.NotificationID(e.Key, ledger.Successful) || post.Header.Get("webhook-timestamp") != strconv.FormatInt(k.Clock.Now().Unix(), 10) {
		t.Errorf("header %v", post.Header)
	}
	operationtest.Golden(t, "testdata/notification.json", []byte(post.Body))
}

func TestBody(t *testing.T) {
	k := deliverytest.New(t)
	web := k.StoreFinalPayment("DemoShop_2", ledger.Cancelled, func(e *ledger.Entry) { e.Channel, e.NotifToken, e.MSISDN = "web", "nt", "" })
	operationtest.Golden(t, "testdata/notification-web.json", delivery.NotificationBody(web, *web.OutboxHead()))
	message := k.StoreMessage("m-1", ledger.DeliveredToNetwork)
	message.CallbackData = ""
	operationtest.Golden(t, "testdata/receipt.json", delivery.NotificationBody(message, *message.OutboxHead()))
}

func TestResponseHandling(t *testing.T) {
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
		{"the last", 500, nil, last, 0, 0, webhook.ReasonServer, false, 1},
		{"the last with Retry-After", 429, []string{"Retry-After", "60"}, last, 0, 0, webhook.ReasonThrottled, false, 1},
		{"410", 410, nil, 1, 0, 0, "", true, 0},
		{"410 at the last", 410, nil, last, 0, 0, "", true, 0},
		{"200", 200, nil, 1, 0, 0, "", false, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			k.MerchantServer.RespondWith("/demo", c.status, c.header...)
			e := deliverOnce(t, k, k.StoreFinalPayment("DemoShop_1", ledger.Failed), c.made)
			failed := c.status >= 300
			if (len(e.Outbox) == 1) != failed || k.LogLines.SumMetric("DeliveryAttemptFailures")+k.LogLines.SumMetric("DeliveredNotifications") != 1 {
				t.Fatalf("outbox %+v, lines %s", e.Outbox, k.LogLines)
			}
			if health := k.HealthStore.Stored(webhookEndpoint(k)); health.Failures != c.failures || health.Enabled() == c.parked {
				t.Errorf("health %+v", health)
			}
			if !failed {
				return
			}
			head := e.OutboxHead()
			if head.DeadReason != c.dead || head.Parked != c.parked || head.LastStatus != c.status || head.LastReason == "" || head.Attempts != c.made {
				t.Errorf("head %+v", head)
			}
			if (k.LogLines.SumMetric("DeadLetters") == 1) != (c.dead != "") {
				t.Errorf("lines %s", k.LogLines)
			}
			if c.next == 0 && !e.DueAt.IsZero() {
				t.Errorf("due at %s", e.DueAt)
			}
			if wait := head.NextAttemptAt.Sub(k.Clock.Now()); c.next > 0 && (wait < c.next || wait > c.most) {
				t.Errorf("waits %s", wait)
			}
		})
	}
}

// Failures side by side each count, so that five of them close the fast path however they race.
func TestHealthOfParallelFailures(t *testing.T) {
	k := deliverytest.New(t)
	k.MerchantServer.RespondWith("/demo", 500)
	var group sync.WaitGroup
	for i := range 5 {
		e := k.StoreFinalPayment("DemoShop_"+strconv.Itoa(i), ledger.Failed)
		group.Go(func() { deliverOnce(t, k, e, 1) })
	}
	group.Wait()
	if health := k.HealthStore.Stored(webhookEndpoint(k)); health.Failures != 5 || health.AllowsFastPath() {
		t.Errorf("%+v", health)
	}
	writes := k.HealthStore.Writes()
	deliverOnce(t, k, k.StoreFinalPayment("DemoShop_9", ledger.Failed), 1)
	if k.HealthStore.Writes() != writes {
		t.Error("one more failure of a closed endpoint was stored")
	}
	k.MerchantServer.RespondWith("/demo", 200)
	deliverOnce(t, k, k.StoreFinalPayment("DemoShop_10", ledger.Failed), 1)
	if health := k.HealthStore.Stored(webhookEndpoint(k)); health.Failures != 0 || !health.AllowsFastPath() {
		t.Errorf("after a success %+v", health)
	}
}

// A success among successes writes no health at all.
func TestHealthyEndpointCausesNoWrites(t *testing.T) {
	k := deliverytest.New(t)
	deliverOnce(t, k, k.StoreFinalPayment("DemoShop_1", ledger.Failed), 1)
	if k.HealthStore.Writes() != 0 {
		t.Errorf("%d writes", k.HealthStore.Writes())
	}
}

// A 410 that meets another attempt's write is applied to it; one that cannot be stored is a failure like others, for
// what is parked at an enabled endpoint would never be queued again.
func TestGoneIsAlwaysStored(t *testing.T) {
	k := deliverytest.New(t)
	e := k.StoreFinalPayment("DemoShop_1", ledger.Failed)
	target, err := k.Courier.FindTarget(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	k.MerchantServer.RespondFunc("/demo", func(w http.ResponseWriter, _ *http.Request) {
		k.HealthStore.StoreHealth(webhook.Health{Endpoint: webhookEndpoint(k), Version: 3, DisabledVersion: 3, Failures: 2})
		w.WriteHeader(410)
	})
	line := telemetry.NewLogLine("sweep", k.Clock.Now())
	k.Courier.PostNotification(context.Background(), e, *e.OutboxHead(), 1, target, line)(e)
	if health := k.HealthStore.Stored(webhookEndpoint(k)); health.Enabled() || health.Failures != 2 || !e.OutboxHead().Parked {
		t.Errorf("health %+v, head %+v", health, e.OutboxHead())
	}

	k = deliverytest.New(t)
	k.MerchantServer.RespondWith("/demo", 410)
	e = k.StoreFinalPayment("DemoShop_1", ledger.Failed)
	if target, err = k.Courier.FindTarget(context.Background(), e); err != nil {
		t.Fatal(err)
	}
	k.HealthStore.SetError(errors.New("down"))
	k.Courier.PostNotification(context.Background(), e, *e.OutboxHead(), 1, target, line)(e)
	if head := e.OutboxHead(); head.Parked || head.NextAttemptAt.IsZero() || head.LastReason != webhook.ReasonGone {
		t.Errorf("head %+v", head)
	}
}

// Whatever an attempt needs is fetched before it is claimed.
func TestFindTarget(t *testing.T) {
	ctx := context.Background()
	k := deliverytest.New(t)
	e := k.StoreFinalPayment("DemoShop_1", ledger.Failed)
	failure := errors.New("table down")
	k.ProfileStore.SetError(failure)
	if _, err := k.Courier.FindTarget(ctx, e); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	k.ProfileStore.SetError(nil)
	k.ProfileStore.SetMissing(true)
	if _, err := k.Courier.FindTarget(ctx, e); err == nil {
		t.Error("an unknown merchant is no error")
	}
	k.HealthStore.StoreHealth(webhook.Health{Endpoint: webhookEndpoint(k), Version: 1, DisabledAt: k.Clock.Now()})
	if target, err := k.Courier.FindTarget(ctx, e); err != nil || target.Enabled() {
		t.Errorf("a disabled endpoint needs no secrets: %+v, %v", target, err)
	}
	k.HealthStore.SetError(failure)
	if _, err := k.Courier.FindTarget(ctx, e); !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	if len(k.MerchantServer.Received("")) != 0 {
		t.Error("something was sent")
	}
}

// A server that answers at once and then drips does not hold the fast path up.
func TestSlowResponseBody(t *testing.T) {
	k := deliverytest.New(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	k.MerchantServer.RespondFunc("/demo", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-over
	})
	began := time.Now()
	delivered := deliverOnce(t, k, k.StoreFinalPayment("DemoShop_1", ledger.Failed), 1)
	if len(delivered.Delivered) != 1 || time.Since(began) > 5*time.Second {
		t.Errorf("%+v after %s", delivered.Outbox, time.Since(began))
	}
}

// decision "notifications": a merchant with a URL for each order closes its server's fast path as any other does; a 410
// is about its own URL alone.
func TestHealthIsSharedByServer(t *testing.T) {
	k := deliverytest.New(t)
	order := func(i int) *ledger.Entry {
		path := "/orders/" + strconv.Itoa(i)
		k.MerchantServer.RespondWith(path, 500)
		return k.StoreFinalPayment("DemoShop_"+strconv.Itoa(i), ledger.Failed, func(e *ledger.Entry) { e.NotifyURL = k.MerchantServer.URL + path })
	}
	for i := range 5 {
		deliverOnce(t, k, order(i), 1)
	}
	next, err := k.Courier.FindTarget(context.Background(), order(6))
	if err != nil || next.AllowsFastPath() || !next.Enabled() {
		t.Errorf("after five failures at five URLs: %+v, %v", next, err)
	}
	k.MerchantServer.RespondWith("/orders/7", 410)
	deliverOnce(t, k, k.StoreFinalPayment("DemoShop_7", ledger.Failed, func(e *ledger.Entry) { e.NotifyURL = k.MerchantServer.URL + "/orders/7" }), 1)
	for path, enabled := range map[string]bool{"/orders/7": false, "/orders/8": true} {
		e := k.StoreFinalPayment("DemoShop_8", ledger.Failed, func(e *ledger.Entry) { e.NotifyURL = k.MerchantServer.URL + path })
		if target, err := k.Courier.FindTarget(context.Background(), e); err != nil || target.Enabled() != enabled {
			t.Errorf("%s is enabled: %v, %v", path, target.Enabled(), err)
		}
	}
}
