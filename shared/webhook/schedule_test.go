package webhook

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDefaultScheduleLength(t *testing.T) {
	var total time.Duration
	for _, wait := range DefaultSchedule() {
		total += wait
	}
	if len(DefaultSchedule()) != 10 || total.Round(time.Hour) != 76*time.Hour {
		t.Errorf("%d attempts in %v, want 10 in about 76h", len(DefaultSchedule()), total)
	}
	if longest := total * 6 / 5; HealthRetention <= longest {
		t.Errorf("failures are kept for %v, want longer than all attempts: %v", HealthRetention, longest)
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
		{"after the last", 10, 0, 0, false},
		{"far beyond", 1000, 0, 0, false},
		{"a longer Retry-After", 1, time.Hour, time.Hour, true},
		{"a shorter Retry-After", 3, time.Second, 30 * time.Minute, true},
		{"a Retry-After after the last", 10, time.Hour, 0, false},
		{"a negative number of attempts", -1, 0, 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			at, more := s.NextAttempt(c.made, start, c.retryAfter, none)
			if more != c.more || (more && at.Sub(start) != c.want) {
				t.Errorf("next attempt after %v, %v, want %v, %v", at.Sub(start), more, c.want, c.more)
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
			t.Fatalf("withJitter(%v) = %v, want ±1/5", wait, got)
		}
	})
}

// The jitter is uniform over all waits from four fifths to six fifths, both included.
func TestJitterValues(t *testing.T) {
	for drawn, want := range map[uint64]time.Duration{0: 40, 1: 41, 10: 50, 20: 60, 21: 40} {
		random := bytes.NewReader(binary.BigEndian.AppendUint64(nil, drawn))
		if got := withJitter(50, random); got != want {
			t.Errorf("a wait of 50 with %d is %d, want %d", drawn, got, want)
		}
	}
}

func TestHealth(t *testing.T) {
	if h := (Health{}); !h.AllowsFastPath() || !h.Enabled() {
		t.Fatal("an unknown endpoint is not healthy")
	}
	failed := Result{Reason: ReasonServer, Status: 500}
	delivered := func(after time.Duration) Result { return Result{Outcome: Delivered, Status: 200, Duration: after} }
	down := func(failures int) Health {
		return Health{Failures: failures, LastReason: ReasonServer, LastStatus: 500, ChangedAt: start}
	}
	cutOff := Result{Outcome: CutOff}
	slow, healthy := Health{ChangedAt: start, Slow: true}, Health{ChangedAt: start}
	notWritten := Health{}
	for _, c := range []struct {
		name     string
		before   Health
		result   Result
		want     Health
		fastPath bool // of what is written
	}{
		{"a success of a healthy endpoint", Health{}, delivered(0), notWritten, false},
		{"the first failure", Health{}, failed, down(1), true},
		{"the second failure", down(1), failed, down(2), true},
		{"the third failure", down(2), failed, down(3), true},
		{"the fourth failure", down(3), failed, down(4), true},
		{"the fifth failure", down(4), failed, down(5), false},
		{"the sixth failure", down(5), failed, notWritten, false},
		{"a slow sixth failure", down(5), Result{Reason: ReasonTimeout, Duration: time.Minute},
			Health{Failures: 6, LastReason: ReasonTimeout, ChangedAt: start, Slow: true}, false},
		{"a success after failures", down(5), delivered(0), healthy, true},
		{"a response after 3 seconds", Health{}, delivered(3 * time.Second), notWritten, false},
		{"a slower one", Health{}, delivered(3*time.Second + time.Millisecond), slow, false},
		{"another slow one", slow, delivered(3*time.Second + time.Millisecond), notWritten, false},
		{"a quick one of a slow server", slow, delivered(QuickThreshold), healthy, true},
		{"one in between of a slow server", slow, delivered(QuickThreshold + time.Millisecond), notWritten, false},
		{"one in between of a slow server after failures", Health{Failures: 5, Slow: true, ChangedAt: start},
			delivered(2 * time.Second), slow, false},
		{"a quick failure of a slow server", slow, failed, down(1), true},
		{"one that was cut off", Health{}, cutOff, slow, false},
		{"another one that was cut off", slow, cutOff, notWritten, false},
		{"one that was cut off after failures", down(4), cutOff,
			Health{Failures: 4, LastReason: ReasonServer, LastStatus: 500, ChangedAt: start, Slow: true}, false},
	} {
		after, changed := c.before.AfterAttempt(c.result, start)
		if changed != (c.want != notWritten) {
			t.Errorf("%s: changed %v", c.name, changed)
		}
		if diff := cmp.Diff(c.want, after); changed && (diff != "" || after.AllowsFastPath() != c.fastPath) {
			t.Errorf("%s: fast path %v, health (-want +got):\n%s", c.name, after.AllowsFastPath(), diff)
		}
	}
}

func TestDisabledEndpoint(t *testing.T) {
	h := Health{Failures: 5, LastReason: ReasonServer, LastStatus: 500, ChangedAt: start}
	gone := Result{Outcome: Gone, Reason: ReasonGone, Status: 410}
	disabled, changed := h.AfterDisable(gone, start)
	wantDisabled := h
	wantDisabled.LastReason, wantDisabled.LastStatus, wantDisabled.DisabledAt = ReasonGone, 410, start
	if diff := cmp.Diff(wantDisabled, disabled); diff != "" || !changed || disabled.Enabled() {
		t.Errorf("after a 410: changed %v, health (-want +got):\n%s", changed, diff)
	}
	again, changed := disabled.AfterDisable(gone, start.Add(time.Hour))
	if changed || !again.DisabledAt.Equal(start) {
		t.Errorf("a second 410: %+v, changed %v", again, changed)
	}
	if late, _ := disabled.AfterAttempt(Result{Outcome: Delivered, Status: 200}, start); late.Enabled() {
		t.Error("a late success enables what a 410 disabled")
	}
	wantEnabled := Health{Failures: h.Failures, ChangedAt: start}
	if diff := cmp.Diff(wantEnabled, disabled.AfterEnable(start)); diff != "" {
		t.Errorf("after it was enabled (-want +got):\n%s", diff)
	}
}

// decision "notifications": after the first success the fast path stays open, also if a request that hung during the
// outage ends only then. A failure that began after the recovery counts.
func TestHealthAfterRecovery(t *testing.T) {
	down := Health{Version: 5, Failures: 7, Slow: true, ChangedAt: start}
	recovered, changed := down.AfterAttempt(Result{Outcome: Delivered, Status: 200}, start.Add(time.Hour))
	if recovered.Version++; !changed || !recovered.AllowsFastPath() {
		t.Fatalf("after a success: %+v, want an open fast path", recovered)
	}
	hung := Result{Reason: ReasonTimeout, Duration: 15 * time.Second}
	if after, changed := recovered.AfterAttempt(hung, start.Add(time.Hour+14*time.Second)); changed {
		t.Errorf("a request from before the recovery counts: %+v", after)
	}
	if after, changed := recovered.AfterAttempt(hung, start.Add(time.Hour+15*time.Second)); !changed || !after.Slow {
		t.Errorf("a request from after the recovery does not count: %+v", after)
	}
	reopened, changed := down.AfterReopen(start.Add(time.Hour))
	want := Health{Version: 5, ChangedAt: start.Add(time.Hour)}
	if diff := cmp.Diff(want, reopened); diff != "" || !changed {
		t.Errorf("after a person reopened the fast path: changed %v (-want +got):\n%s", changed, diff)
	}
	if _, changed := (Health{Failures: 4}).AfterReopen(start); changed {
		t.Error("an open fast path was reopened")
	}
	if _, changed := (Health{Failures: maxConsecutiveFailures}).AfterReopen(start); !changed {
		t.Error("a closed fast path was not reopened")
	}
}

// decision "notifications": each spelling of a server's URLs has the same origin.
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
