package webhook

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDefaultScheduleLength(t *testing.T) {
	var total time.Duration
	for _, wait := range DefaultSchedule() {
		total += wait
	}
	if len(DefaultSchedule()) != 10 || total.Round(time.Hour) != 76*time.Hour {
		t.Errorf("%d attempts in %v", len(DefaultSchedule()), total)
	}
}

func TestNextAttempt(t *testing.T) {
	none := strings.NewReader("") // no random bytes: no jitter
	s := DefaultSchedule()
	cases := []struct {
		name       string
		made       int
		retryAfter time.Duration
		want       time.Duration
		more       bool
	}{
		{"the first is at once", 0, 0, 0, true},
		{"the second", 1, 0, 5 * time.Second, true},
		{"the third", 2, 0, 5 * time.Minute, true},
		{"the last", 9, 0, 24 * time.Hour, true},
		{"no more", 10, 0, 0, false},
		{"far beyond", 1000, 0, 0, false},
		{"asked to wait longer", 1, time.Hour, time.Hour, true},
		{"asked to wait less", 3, time.Second, 30 * time.Minute, true},
		{"asked to wait, but dead", 10, time.Hour, 0, false},
		{"no number of attempts", -1, 0, 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			at, more := s.NextAttempt(c.made, start, c.retryAfter, none)
			if more != c.more || (more && at.Sub(start) != c.want) {
				t.Errorf("Next = %v, %v", at.Sub(start), more)
			}
		})
	}
	if _, more := (Schedule{}).NextAttempt(0, start, 0, none); more {
		t.Error("an empty schedule has an attempt")
	}
}

func TestJitterBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wait := time.Duration(rapid.Int64Range(0, int64(7*24*time.Hour)).Draw(t, "wait"))
		random := bytes.NewReader(rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "random"))
		if got := withJitter(wait, random); got < wait-wait/5 || got > wait+wait/5 {
			t.Fatalf("jittered(%v) = %v", wait, got)
		}
	})
}

func TestJitterDistribution(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	early, late := 0, 0
	for range 1000 {
		switch got := withJitter(time.Hour, random); {
		case got < 54*time.Minute:
			early++
		case got > 66*time.Minute:
			late++
		}
	}
	if early < 200 || late < 200 {
		t.Errorf("of 1000 waits %d are early and %d late, want about 250 each", early, late)
	}
}

func TestHealth(t *testing.T) {
	failed, delivered, gone := Result{Reason: ReasonServer, Status: 500}, Result{Outcome: Delivered, Status: 200}, Result{Outcome: Gone, Reason: ReasonGone, Status: 410}
	var h Health
	if !h.AllowsFastPath() || !h.Enabled() {
		t.Fatal("an unknown endpoint is not healthy")
	}
	if _, changed := h.AfterAttempt(delivered, start); changed {
		t.Error("a success of a healthy endpoint is written")
	}
	for i := 1; i <= 5; i++ {
		var changed bool
		if h, changed = h.AfterAttempt(failed, start); !changed || h.Failures != i || h.AllowsFastPath() != (i < 5) || !h.Enabled() {
			t.Fatalf("after %d failures: %+v, changed %v", i, h, changed)
		}
	}
	if _, changed := h.AfterAttempt(failed, start); changed {
		t.Error("the sixth failure is written")
	}
	if h.LastReason != ReasonServer || h.LastStatus != 500 {
		t.Errorf("last failure %+v", h)
	}
	recovered, changed := h.AfterAttempt(delivered, start)
	if !changed || !recovered.AllowsFastPath() || recovered.Failures != 0 || recovered.LastReason != "" {
		t.Errorf("after a success: %+v", recovered)
	}
	slow := Result{Outcome: Delivered, Status: 200, Duration: slowThreshold + time.Millisecond}
	slowServer, changed := Health{}.AfterAttempt(slow, start)
	if !changed || slowServer.AllowsFastPath() || !slowServer.Enabled() || slowServer.Failures != 0 {
		t.Errorf("after a slow answer: %+v", slowServer)
	}
	if _, changed := slowServer.AfterAttempt(slow, start); changed {
		t.Error("one more slow answer is stored")
	}
	if quick, changed := slowServer.AfterAttempt(delivered, start); !changed || !quick.AllowsFastPath() {
		t.Errorf("after a quick answer: %+v", quick)
	}
	disabled, changed := h.AfterDisable(gone, start)
	if !changed || disabled.Enabled() || disabled.AllowsFastPath() || !disabled.DisabledAt.Equal(start) || disabled.Failures != h.Failures || disabled.LastStatus != 410 {
		t.Errorf("after 410: %+v", disabled)
	}
	again, changed := disabled.AfterDisable(gone, start.Add(time.Hour))
	if changed || !again.DisabledAt.Equal(start) {
		t.Errorf("a second 410: %+v, changed %v", again, changed)
	}
	if late, _ := disabled.AfterAttempt(delivered, start); late.Enabled() {
		t.Error("a late success enables what a 410 disabled")
	}
	if enabled := disabled.AfterEnable(start); !enabled.Enabled() || enabled.Failures != h.Failures || enabled.Endpoint != disabled.Endpoint {
		t.Errorf("enabled: %+v", enabled)
	}
}

// decision "notifications": one server's URLs, however they are written.
func TestEndpointServer(t *testing.T) {
	for url, origin := range map[string]string{
		"https://shop.example/orders/1?a=b": "https://shop.example:443",
		"https://shop.example:443":          "https://shop.example:443",
		"HTTPS://Shop.Example/":             "https://shop.example:443",
		"https://shop.example:8443/x":       "https://shop.example:8443",
		"http://127.0.0.1:3002/demo":        "http://127.0.0.1:3002",
		"http://shop.example/x":             "http://shop.example:80",
		"https://[2001:DB8::1]/x":           "https://[2001:db8::1]:443",
		"no URL":                            "no URL",
		"":                                  "",
	} {
		if got := (Endpoint{MerchantID: "m1", URL: url}).Server(); got != (Server{MerchantID: "m1", Origin: origin}) {
			t.Errorf("%q: %+v", url, got)
		}
	}
}
