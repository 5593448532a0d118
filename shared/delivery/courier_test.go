package delivery_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	official "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/webhook"
)

func mustFindTarget(t *testing.T, k *deliverytest.DeliveryFixture, e *ledger.Entry) delivery.Target {
	t.Helper()
	target, err := k.Courier.FindTarget(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// post makes one attempt at the first notification of an entry and returns the changed entry.
func post(
	t *testing.T, k *deliverytest.DeliveryFixture, e *ledger.Entry, number int, to delivery.Target,
) *ledger.Entry {
	t.Helper()
	line := telemetry.NewLogLine("sweep", k.Clock.Now())
	changed := e.Clone()
	claim := *e.Outbox.HeadClaim()
	claim.Attempts = number - 1
	changed.Outbox.Head().Attempts = claim.Attempts
	attempt := delivery.Attempt{DeliveryClaim: claim, Target: to}
	k.Courier.PostNotification(context.Background(), e, attempt, line)(changed)
	if err := line.Write(k.LogLines); err != nil {
		t.Fatal(err)
	}
	return changed
}

// postFailed stores a failed payment with a notification to a path, and makes one attempt to deliver it.
func postFailed(t *testing.T, k *deliverytest.DeliveryFixture, id, path string, attemptNumber int) *ledger.Entry {
	t.Helper()
	e := storeFailed(k, id, path)
	return post(t, k, e, attemptNumber, mustFindTarget(t, k, e))
}

func storeFailed(k *deliverytest.DeliveryFixture, id, path string) *ledger.Entry {
	return k.StoreFinalPayment(id, ledger.Failed, func(e *ledger.Entry) { e.Outbox.URL = k.MerchantServer.URL + path })
}

func endpoint(k *deliverytest.DeliveryFixture) webhook.Endpoint {
	return webhook.Endpoint{MerchantID: "demo0001", URL: k.MerchantServer.URL + "/demo"}
}

// An attempt that its caller cuts off changes nothing of the entry, and makes the server slow.
func TestCutOff(t *testing.T) {
	k := deliverytest.New(t)
	ctx, cutOff := context.WithCancelCause(t.Context())
	over := make(chan struct{})
	k.MerchantServer.RespondFunc("/demo", func(http.ResponseWriter, *http.Request) {
		cutOff(webhook.ErrCutOff)
		<-over
	})
	defer close(over)
	e := storeFailed(k, "DemoShop_1", "/demo")
	line := telemetry.NewLogLine("relay", k.Clock.Now())
	attempt := delivery.Attempt{DeliveryClaim: *e.Outbox.HeadClaim(), Target: mustFindTarget(t, k, e)}
	if change := k.Courier.PostNotification(ctx, e, attempt, line); change != nil {
		t.Error("the attempt changes the entry")
	}
	if health := k.HealthStore.Stored(endpoint(k)); !health.Slow || health.Failures != 0 {
		t.Errorf("health %+v, want a slow server without failures", health)
	}
	k.AssertReceived(t, 1)
}

// The signature verifies with the official library of Standard Webhooks, under both live secrets.
func TestNotificationIsSigned(t *testing.T) {
	k := deliverytest.New(t)
	e := k.StoreFinalPayment("DemoShop_1", ledger.Successful)
	if after := post(t, k, e, 1, mustFindTarget(t, k, e)); len(after.Outbox.Waiting) != 0 ||
		len(after.Outbox.Delivered) != 1 {
		t.Errorf("outbox %+v, delivered %+v", after.Outbox.Waiting, after.Outbox.Delivered)
	}
	k.AssertReceived(t, 1)
	received := k.MerchantServer.Received("/demo")[0]
	for _, version := range []int{1, 2} {
		verifier, err := official.NewWebhook(deliverytest.WebhookSecret("demo0001", version))
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.VerifyIgnoringTimestamp([]byte(received.Body), received.Header); err != nil {
			t.Errorf("secret %d: %v", version, err)
		}
	}
	got := []string{received.ID(), received.Header.Get("webhook-timestamp")}
	want := []string{ledger.NotificationID(e.Key, ledger.Successful), strconv.FormatInt(k.Clock.Now().Unix(), 10)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhook-id and webhook-timestamp (-want +got):\n%s", diff)
	}
	operationtest.Golden(t, "testdata/notification.json", []byte(received.Body))
}

func TestBody(t *testing.T) {
	k := deliverytest.New(t)
	web := k.StoreFinalPayment("DemoShop_2", ledger.Cancelled, func(e *ledger.Entry) {
		e.Request.Channel, e.Outbox.NotifToken, e.Request.MSISDN = "web", "nt", ""
	})
	operationtest.Golden(t, "testdata/notification-web.json", delivery.NotificationBody(web, *web.Outbox.Head(), ""))
	message := k.StoreMessage("m-1", ledger.DeliveredToNetwork)
	message.Request.CallbackData = ""
	operationtest.Golden(t, "testdata/receipt.json", delivery.NotificationBody(message, *message.Outbox.Head(), ""))
}

// decision "charge-notif": the body is that of the charge's lookup when the outcome became known, to which a refusal
// adds the charge's keys. The response that a retry makes after a manual resolution does not change it.
func TestChargeBody(t *testing.T) {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: "c-1"}, Call: ledger.Call{State: ledger.Done},
		Amount:  ledger.Amount{AsSent: "500", Currency: "XOF"},
		Request: ledger.Request{ReferenceCode: "REF-1", Correlator: "c"},
	}
	body := func(status ledger.Status) []byte {
		return delivery.NotificationBody(e, ledger.Notification{Status: status}, "https://api.example.com")
	}
	operationtest.Golden(t, "testdata/charge-resolved.json", body(ledger.Successful))
	e.Manual.Outcome = ledger.ManuallyApplied
	e.Response = ledger.Response{Status: 201, Body: []byte(`{"amountTransaction":"of the retry"}`)}
	operationtest.Golden(t, "testdata/charge-resolved.json", body(ledger.Successful))
	e.Manual.Outcome = ""
	if late := body(ledger.Successful); string(late) != string(e.Response.Body) {
		t.Errorf("the notification of a late success is %s, want its response", late)
	}
	refusal := oneapi.Render(&fault.Fault{
		Kind: fault.OperatorError, OperatorException: &fault.OperatorException{MessageID: "POL1000"},
	})
	e.State, e.Response.Status, e.Response.Body = ledger.Refused, refusal.Status, refusal.Body
	operationtest.Golden(t, "testdata/charge-refused.json", body(ledger.Failed))
	if string(e.Response.Body) != string(refusal.Body) {
		t.Errorf("the stored refusal became %s", e.Response.Body)
	}
	e.Request.Correlator, e.Request.ReferenceCode = "", `R"<&>é`
	operationtest.Golden(t, "testdata/charge-refused-reference.json", body(ledger.Failed))
}

func TestResponseHandling(t *testing.T) {
	last := len(webhook.DefaultSchedule())
	const shortest, longest, day = 4 * time.Second, 6 * time.Second, 24 * time.Hour // 5 s ±20 %
	cases := []struct {
		name          string
		status        int
		header        []string
		attemptNumber int
		minWait       time.Duration // 0: no further attempt is due
		maxWait       time.Duration
		deadReason    string
	}{
		{"500", 500, nil, 1, shortest, longest, ""},
		{"301 is not followed", 301, []string{"Location", "http://127.0.0.1:1/"}, 1, shortest, longest, ""},
		{"429 with Retry-After", 429, []string{"Retry-After", "3600"}, 1, time.Hour, time.Hour, ""},
		{"429 with a short Retry-After", 429, []string{"Retry-After", "1"}, 2, 4 * time.Minute, 6 * time.Minute, ""},
		{"502 with Retry-After", 502, []string{"Retry-After", "7200"}, 1, 2 * time.Hour, 2 * time.Hour, ""},
		{"504 with Retry-After of a week", 504, []string{"Retry-After", "604800"}, 1, day, day, ""},
		{"503 with an ignored Retry-After", 503, []string{"Retry-After", "7200"}, 1, shortest, longest, ""},
		{"the ninth", 500, nil, 9, 24 * 48 * time.Minute, 24 * 72 * time.Minute, ""},
		{"the last", 500, nil, last, 0, 0, webhook.ReasonServer},
		{"the last with Retry-After", 429, []string{"Retry-After", "60"}, last, 0, 0, webhook.ReasonThrottled},
		{"410", 410, nil, 1, 0, 0, ""},
		{"410 at the last", 410, nil, last, 0, 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			k.MerchantServer.RespondWith("/demo", c.status, c.header...)
			e := postFailed(t, k, "DemoShop_1", "/demo", c.attemptNumber)
			gone, head := c.status == 410, &e.Outbox.Waiting[0]
			k.AssertMetric(t, "DeliveryAttemptFailures", 1)
			deadLetters, failures := 0, 1
			if c.deadReason != "" {
				deadLetters = 1
			}
			if gone {
				failures = 0
			}
			k.AssertMetric(t, "DeadLetters", deadLetters)
			if health := k.HealthStore.Stored(endpoint(k)); health.Failures != failures || health.Enabled() == gone {
				t.Errorf("health %+v, want %d failures and disabled %v", health, failures, gone)
			}
			want := ledger.Notification{
				ID: head.ID, Status: ledger.Failed, At: head.At, Attempts: c.attemptNumber,
				NextAttemptAt: head.NextAttemptAt, DeadReason: c.deadReason, Parked: gone,
				LastStatus: c.status, LastReason: head.LastReason,
			}
			if diff := cmp.Diff(want, *head); diff != "" || head.LastReason == "" {
				t.Errorf("reason %q, notification (-want +got):\n%s", head.LastReason, diff)
			}
			if c.minWait == 0 && e.Outbox.DeliveryDue(k.Clock.Now().Add(1000*time.Hour)) {
				t.Error("a further attempt is due, want none")
			}
			if wait := head.NextAttemptAt.Sub(k.Clock.Now()); c.minWait > 0 && (wait < c.minWait || wait > c.maxWait) {
				t.Errorf("next attempt after %s, want %s to %s", wait, c.minWait, c.maxWait)
			}
		})
	}
	t.Run("200", func(t *testing.T) {
		k := deliverytest.New(t)
		if e := postFailed(t, k, "DemoShop_1", "/demo", 1); len(e.Outbox.Waiting) != 0 {
			t.Errorf("outbox %+v, want none", e.Outbox.Waiting)
		}
		k.AssertMetric(t, "DeliveredNotifications", 1)
		k.AssertMetric(t, "DeliveryAttemptFailures", 0)
		if writes := k.HealthStore.WriteCount(); writes != 0 {
			t.Errorf("%d writes of health after a success, want none", writes)
		}
	})
}

// Concurrent failures each count, so that five of them close the fast path in any interleaving.
func TestHealthOfParallelFailures(t *testing.T) {
	k := deliverytest.New(t)
	k.MerchantServer.RespondWith("/demo", 500)
	var group sync.WaitGroup
	for i := range 5 {
		group.Go(func() { postFailed(t, k, "DemoShop_"+strconv.Itoa(i), "/demo", 1) })
	}
	group.Wait()
	if health := k.HealthStore.Stored(endpoint(k)); health.Failures != 5 || health.AllowsFastPath() {
		t.Errorf("after 5 failures: %+v, want a closed fast path", health)
	}
	writes := k.HealthStore.WriteCount()
	postFailed(t, k, "DemoShop_9", "/demo", 1)
	if k.HealthStore.WriteCount() != writes {
		t.Error("another failure was stored, but the fast path is closed already")
	}
	k.MerchantServer.RespondWith("/demo", 200)
	postFailed(t, k, "DemoShop_10", "/demo", 1)
	if health := k.HealthStore.Stored(endpoint(k)); health.Failures != 0 || !health.AllowsFastPath() {
		t.Errorf("after a success: %+v, want an open fast path", health)
	}
}

// A 410 is applied to the health that a concurrent write stored. A 410 that cannot be stored counts as any other
// failure: a notification that is parked at an enabled endpoint would never be queued again.
func TestGoneIsAlwaysStored(t *testing.T) {
	k := deliverytest.New(t)
	k.MerchantServer.RespondFunc("/demo", func(w http.ResponseWriter, _ *http.Request) {
		k.HealthStore.StoreHealth(webhook.Health{Endpoint: endpoint(k), Version: 3, DisabledVersion: 3, Failures: 2})
		w.WriteHeader(410)
	})
	e := postFailed(t, k, "DemoShop_1", "/demo", 1)
	if health := k.HealthStore.Stored(endpoint(k)); health.Enabled() || health.Failures != 2 {
		t.Errorf("health %+v, want a disabled URL and 2 failures of the server", health)
	}
	if !e.Outbox.Head().Parked {
		t.Errorf("notification %+v, want it parked", e.Outbox.Head())
	}

	k = deliverytest.New(t)
	k.MerchantServer.RespondWith("/demo", 410)
	e = storeFailed(k, "DemoShop_1", "/demo")
	target := mustFindTarget(t, k, e)
	k.HealthStore.Err = errors.New("down")
	head := post(t, k, e, 1, target).Outbox.Head()
	if head.Parked || head.NextAttemptAt.IsZero() || head.LastReason != webhook.ReasonGone {
		t.Errorf("the 410 was not stored: notification %+v, want a retry", head)
	}
}

// FindTarget reads everything that an attempt needs, before the attempt is claimed.
func TestFindTarget(t *testing.T) {
	down := errors.New("table down")
	cases := []struct {
		name    string
		prepare func(*deliverytest.DeliveryFixture)
		want    error // nil: any
	}{
		{"profiles cannot be read", func(k *deliverytest.DeliveryFixture) { k.ProfileStore.Err = down }, down},
		{"an unknown merchant", func(k *deliverytest.DeliveryFixture) { k.ProfileStore.Missing = true }, nil},
		{"health cannot be read", func(k *deliverytest.DeliveryFixture) { k.HealthStore.Err = down }, down},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			c.prepare(k)
			_, err := k.Courier.FindTarget(context.Background(), storeFailed(k, "DemoShop_1", "/demo"))
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			k.AssertReceived(t, 0)
		})
	}
	t.Run("a disabled endpoint needs no secrets", func(t *testing.T) {
		k := deliverytest.New(t)
		k.ProfileStore.Missing = true
		k.HealthStore.StoreHealth(webhook.Health{Endpoint: endpoint(k), Version: 1, DisabledAt: k.Clock.Now()})
		if mustFindTarget(t, k, storeFailed(k, "DemoShop_1", "/demo")).Enabled() {
			t.Error("the endpoint is enabled")
		}
	})
}

// A server that responds at once and sends its body slowly does not delay the fast path.
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
	if e := postFailed(t, k, "DemoShop_1", "/demo", 1); len(e.Outbox.Delivered) != 1 {
		t.Errorf("not delivered: outbox %+v", e.Outbox.Waiting)
	}
	if elapsed := time.Since(began); elapsed > 5*time.Second {
		t.Errorf("the attempt lasted %s", elapsed)
	}
}

// decision "notifications": failures at different URLs of one server close its fast path; a 410 disables only its URL.
func TestHealthIsSharedByServer(t *testing.T) {
	k := deliverytest.New(t)
	for i := range 5 {
		path := "/orders/" + strconv.Itoa(i)
		k.MerchantServer.RespondWith(path, 500)
		postFailed(t, k, "DemoShop_"+strconv.Itoa(i), path, 1)
	}
	if target := mustFindTarget(t, k, storeFailed(k, "DemoShop_6", "/orders/6")); target.AllowsFastPath() {
		t.Errorf("after five failures at five URLs: %+v, want a closed fast path", target.Health)
	}
	k.MerchantServer.RespondWith("/orders/7", 410)
	postFailed(t, k, "DemoShop_7", "/orders/7", 1)
	for path, enabled := range map[string]bool{"/orders/6": true, "/orders/7": false, "/orders/8": true} {
		if got := mustFindTarget(t, k, storeFailed(k, "DemoShop_8", path)).Enabled(); got != enabled {
			t.Errorf("after a 410 at /orders/7, %s is enabled: %v, want %v", path, got, enabled)
		}
	}
}
