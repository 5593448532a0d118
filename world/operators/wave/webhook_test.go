package wave_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/wave"
)

func TestWebhooksThatComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.press(b.create(ours), "confirm", "221770001006")
		time.Sleep(time.Minute)
		b.press(b.create(ours), "confirm", "221770001007")
		time.Sleep(time.Minute)
		got := b.Callbacks.All()
		if len(got) != 5 || got[0].Body != got[1].Body || got[0].Body != got[2].Body {
			t.Errorf("duplicates differ: %v", got)
		}
		late := stubtest.Parse[event](t, got[4].Body)
		if words := late.Data.words(); late.Type != "checkout.session.payment_failed" ||
			words != "open processing payment-failure" {
			t.Errorf("late event: %+v", late)
		}
	})
}

func mac(secret, stamp, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(stamp + body))
	return hex.EncodeToString(m.Sum(nil))
}

func TestSignedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", func(c *wave.Credentials) { c.Wallets[0].RequestSecret = "s" })
		body := fmt.Sprintf(valid, ours)
		for _, c := range []struct {
			name, secret, signed string
			age                  time.Duration
			status               int
		}{
			{"good", "s", body, time.Minute, 200},
			{"secret", "x", body, 0, 401},
			{"body", "s", body + " ", 0, 401},
			{"old", "s", body, 6 * time.Minute, 401},
			{"future", "s", body, -6 * time.Minute, 401},
		} {
			stamp := fmt.Sprint(time.Now().Add(-c.age).Unix())
			status, text := b.Do("POST", path, body, "Authorization", senegal,
				"Wave-Signature", "t="+stamp+",v1="+mac(c.secret, stamp, c.signed))
			if status != c.status {
				t.Errorf("%s: %d %s, want %d", c.name, status, text, c.status)
			}
		}
		if status, _ := b.Do("POST", path, body, "Authorization", senegal); status != 401 {
			t.Error("a request without a signature is accepted")
		}
	})
}

func TestWebhookSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", func(c *wave.Credentials) { c.Wallets[0].WebhookSecrets = []string{"new", "old"} })
		b.Callbacks.Respond(500)
		b.press(b.create(ours), "confirm", payerSN)
		time.Sleep(time.Hour)
		all := b.Callbacks.All()
		if len(all) != 4 {
			t.Fatalf("%d attempts, want 4", len(all))
		}
		stamps := map[string]bool{}
		for _, c := range all {
			header := c.Header.Get("Wave-Signature")
			stamp := strings.TrimPrefix(strings.Split(header, ",")[0], "t=")
			stamps[stamp] = true
			if header != "t="+stamp+",v1="+mac("new", stamp, c.Body)+",v1="+mac("old", stamp, c.Body) {
				t.Errorf("signature %s", header)
			}
		}
		if len(stamps) != 4 {
			t.Errorf("attempts have the times %v", stamps)
		}
	})
}

func TestSharedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "shared_secret")
		b.press(b.create(ours), "confirm", payerSN)
		time.Sleep(time.Minute)
		header := b.Callbacks.All()[0].Header
		if header.Get("Authorization") != "Bearer wave_sn_WHS_stub" || header.Get("Wave-Signature") != "" {
			t.Error(header)
		}
	})
}

func TestShortSessionsAndTestEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "session_3s")
		s := b.create(ours)
		time.Sleep(3 * time.Second)
		if got := b.find(s.ID).words(); got != "expired processing" {
			t.Error(got)
		}
		b.Do("POST", "/portal/test-event", "")
		time.Sleep(2 * time.Second)
		if got := b.events(); got != "test.test_event" {
			t.Error(got)
		}
	})
}

// An empty list means "not yet" with search_late, also for a session that can be paid.
func TestLateSearch(t *testing.T) {
	for quirks, want := range map[string]string{"": "1 1", "search_late": "0 1"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, quirks)
			b.create(ours)
			search := func() int {
				return len(stubtest.Parse[struct{ Result []session }](t, b.search()).Result)
			}
			early := search()
			time.Sleep(5 * time.Second)
			if got := fmt.Sprint(early, search()); got != want {
				t.Errorf("%s: %s sessions, want %s", quirks, got, want)
			}
		})
	}
}

func TestWireForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		credentials := wave.DefaultCredentials()
		credentials.PageURL, credentials.Wallets[0].WebhookURL = "https://pay.test/wave", webhooks
		config := kit.Config{Rand: stubtest.Zeros{}, Client: stubtest.Client(b.Callbacks)}
		b.Handler = wave.New(config, credentials).Handler()
		s := b.create(ours)
		_, created := b.Do("GET", path+"/"+s.ID, "", "Authorization", senegal)
		time.Sleep(2 * time.Minute)
		b.press(s, "confirm", payerSN)
		time.Sleep(time.Minute)
		const form = `{"aggregated_merchant_id":null,"amount":"500","business_name":"Stub shop SN",` +
			`"checkout_status":"%s","client_reference":"ORD1","currency":"XOF","error_url":"https://m.test/ko",` +
			`"id":"cos-00000000000000","last_payment_error":null,"payment_status":"%s",` +
			`"success_url":"https://m.test/ok","transaction_id":%s,"wave_launch_url":` +
			`"https://pay.test/wave/c/cos-00000000000000?a=500\u0026c=XOF\u0026m=Stub+shop+SN",` +
			`"when_completed":%s,"when_created":"2000-01-01T00:00:00Z","when_expires":"2000-01-01T00:30:00Z"}`
		if want := fmt.Sprintf(form, "open", "processing", "null", "null"); created != want {
			t.Errorf("got  %s\nwant %s", created, want)
		}
		want := `{"data":` + fmt.Sprintf(form, "complete", "succeeded", `"T0000000000"`, `"2000-01-01T00:02:00Z"`) +
			`,"id":"EV_000000000000","type":"checkout.session.completed"}`
		if got := b.Callbacks.All()[0].Body; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
