package sandbox

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A hundred concurrent equal requests have one effect and, except for the SMS's duplicates, one response.
func TestParallelEqualRequests(t *testing.T) {
	for _, c := range []struct {
		name, key string
		call      func(r *testSandbox) testResponse
		created   int
	}{
		{"charge", "Shop.k1", func(r *testSandbox) testResponse { return r.charge("Shop.k1", "5555") }, 100},
		{"pay", "Shop_1", func(r *testSandbox) testResponse { return r.pay("ussd", "Shop_1", "0700005555") }, 100},
		{"web", "Shop_1", func(r *testSandbox) testResponse { return r.pay("web", "Shop_1", "0700005555") }, 100},
		{"sms", "Shop.k1", func(r *testSandbox) testResponse { return r.sms("Shop.k1", "5555") }, 1},
		{"charge 1005", "Shop.k1", func(r *testSandbox) testResponse { return r.charge("Shop.k1", "1005") }, 99},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTestSandbox(t)
			var wait sync.WaitGroup
			var mu sync.Mutex
			bodies, created := map[string]bool{}, 0
			for range 100 {
				wait.Go(func() {
					response := c.call(r)
					mu.Lock()
					defer mu.Unlock()
					if response.status == http.StatusCreated {
						created++
						bodies[response.body] = true
					}
				})
			}
			wait.Wait()
			r.clock.Advance(time.Minute)
			want := 1
			if c.name == "web" {
				want = 0 // the page was not confirmed
			}
			r.checkEffects(c.key, want)
			equal(t, "responses with 201", created, c.created)
			equal(t, "different bodies", len(bodies), 1)
			if views := r.transactions(c.key); len(views) != 1 || views[0].Calls != 100 {
				t.Errorf("transactions: %+v", views)
			}
		})
	}
}

func TestChargeRepeatIgnoresItsBody(t *testing.T) {
	r := newTestSandbox(t)
	first := r.charge("Shop.k1", "5555")
	again := r.do("POST", chargePath, chargeJSON("Shop.k1", "ref-2", `700`), chargeHeaders)
	equal(t, "status of a repeat", again.status, 201)
	equal(t, "body of a repeat", again.body, first.body)
}

func TestPaymentRepeat(t *testing.T) {
	for _, c := range []struct {
		name, want string
		old, new   string // in the body of the repeat
		headers    map[string]string
	}{
		{"equal", "201", "", "", payHeaders},
		{"another amount", "409 SVC0005", "1500.00", "1501", payHeaders},
		{"another way to write the same", "201", "", " \n", payHeaders},
		{"another channel", "409 SVC0005", "", "", withHeaders(payHeaders, "channel", "ussd")},
		{"another otp", "201", `"otp_code":"1234"`, `"otp_code":"9"`, payHeaders},
		{"another callback address", "201", "/callbacks", "/callbacks2", payHeaders},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTestSandbox(t)
			body := payJSON("Shop_1", "0700005555", "1234")
			first := r.do("POST", "/mobilemoney/v1", body, payHeaders)
			r.clock.Advance(time.Minute)
			again := r.do("POST", "/mobilemoney/v1", strings.Replace(body, c.old, c.new, 1), c.headers)
			if again.summary() != c.want {
				t.Fatalf("%s, want %s", again.summary(), c.want)
			}
			same := strings.Replace(first.body, `"1234"`, `"9"`, 1)
			if again.status == 201 && again.body != first.body && again.body != same {
				t.Errorf("first %s\nagain %s", first.body, again.body)
			}
		})
	}
}

func TestOTPIsNeverKept(t *testing.T) {
	dir := t.TempDir()
	r := startSandbox(t, dir, newClock(), &inbox{}, 1)
	response := r.do("POST", "/mobilemoney/v1", payJSON("Shop_1", "0700005555", "otp-98765"), payHeaders)
	contains(t, "otp_code in the response", response.body, `"otp_code":"otp-98765"`)
	r.clock.Advance(time.Minute)
	if status := r.do("GET", "/mobilemoney/getstatus/v1/Shop_1", "", payHeaders); strings.Contains(status.body, "otp") {
		t.Errorf("in getStatus: %s", status.body)
	}
	for name, text := range map[string]string{
		"file": readFile(t, dir), "callbacks": strings.Join(r.inbox.bodies, "\n"), "log": r.log.String(),
		"control port": r.do("GET", "/sandbox/v1/transactions", "", nil).body,
	} {
		if text == "" || strings.Contains(text, "98765") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// A call that was not applied does not fix the body of its key.
func TestUnappliedKeyIsReusable(t *testing.T) {
	r := newTestSandbox(t)
	if response := r.pay("tpe", "Shop_1", "0700001009"); response.status != 503 ||
		response.header.Get("Retry-After") == "" {
		t.Fatalf("%s", response.summary())
	}
	equal(t, "status of the response", r.pay("tpe", "Shop_1", "0700005555").status, 201)
}

func TestSMSDuplicateNamesTheFirst(t *testing.T) {
	r := newTestSandbox(t)
	first, again := r.sms("Shop.s1", "5555"), r.sms("Shop.s1", "5555")
	if first.header.Get("Location") == "" || again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("%q, %q", first.header.Get("Location"), again.header.Get("Location"))
	}
	want := `"variables":["Shop.s1","outboundSMSMessageRequest.clientCorrelator"]`
	contains(t, "body", again.body, want)
}
