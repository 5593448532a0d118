package sandbox

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/world/operators/kit"
)

func readFile(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, journalFileName))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// restart closes a sandbox and opens another over its folder.
func (r *testSandbox) restart(dir string) *testSandbox {
	r.Helper()
	equal(r, "error of Close", r.sandbox.Close(), nil)
	return startSandbox(r.T, dir, r.clock, r.inbox, 2)
}

func TestStateSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	r := startSandbox(t, dir, newClock(), &inbox{}, 1)
	charge := r.charge("Shop.c1", "5555")
	r.charge("Shop.c2", "1001")
	r.pay("tpe", "Shop_1", "0700005555")
	web := r.payWeb("Shop_2", "")
	r.sms("Shop.s1", "5555")
	pin := r.issuePIN("")
	var booked slot
	r.control("POST /slots", `{"merchant":"Shop"}`, 201, &booked)

	r = r.restart(dir)
	if again := r.charge("Shop.c1", "5555"); again.body != charge.body {
		t.Errorf("charge: %s", again.body)
	}
	checkSummary(t, "refused charge", r.charge("Shop.c2", "5555"), "403 POL0253")
	checkSummary(t, "SMS", r.sms("Shop.s1", "5555"), "409 SVC0005")
	r.clock.Advance(time.Second)
	equal(t, "getStatus", r.status("Shop_1"), successful)
	equal(t, "page", r.confirm(web.path(), pin.MSISDN, pin.PIN).status, 303)
	for key, want := range map[string]int{"c1": 1, "c2": 0, "Shop_1": 1, "Shop_2": 1, "s1": 1} {
		r.checkEffects(key, want)
	}
	var slots []slot
	r.control("GET /slots", "", 200, &slots)
	equal(t, "number of slots", len(slots), 1)
	equal(t, "slot after a restart", slots[0], booked)
	r.control("DELETE /slots/"+booked.ID, "", 204, nil)

	r = r.restart(dir)
	r.control("GET /slots", "", 200, &slots)
	equal(t, "number of slots", len(slots), 0)
	equal(t, "a used PIN", r.confirm(r.payWeb("Shop_3", "").path(), pin.MSISDN, pin.PIN).status, 403)
}

// The work in progress continues: a slow call, a final status, a callback that was refused.
func TestTimersSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	r := startSandbox(t, dir, newClock(), &inbox{}, 1)
	r.inbox.responseStatuses = []int{503}
	r.pay("tpe", "Shop_1", "0700005555")
	r.clock.Advance(time.Second)
	r.charge("Shop.c1", "1004")
	r.clock.Advance(900 * time.Millisecond)
	r.checkCallbacks(successful)
	r2 := r.restart(dir)
	checkSummary(t, "in flight", r2.charge("Shop.c1", "1004"), "409 SVC0005")
	r2.clock.Advance(time.Minute)
	r2.checkCallbacks("successful successful")
	r2.checkEffects("c1", 1)
}

func TestPartialLastLineIsDropped(t *testing.T) {
	dir := t.TempDir()
	r := startSandbox(t, dir, newClock(), &inbox{}, 1)
	r.charge("Shop.c1", "5555")
	equal(t, "error of Close", r.sandbox.Close(), nil)
	path := filepath.Join(dir, journalFileName)
	if err := os.WriteFile(path, []byte(readFile(t, dir)+`{"transaction":{"ki`), 0o600); err != nil {
		t.Fatal(err)
	}
	r = startSandbox(t, dir, r.clock, r.inbox, 2)
	r.checkEffects("c1", 1)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestCorruptJournalIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journalFileName), []byte("nonsense\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Config{Dir: dir, Tokens: []string{"t"}, BaseURL: "http://x"})
	if err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
}

func TestJournalIsCompacted(t *testing.T) {
	dir := t.TempDir()
	r := startSandbox(t, dir, newClock(), &inbox{}, 1)
	for range 20 {
		r.charge("Shop.c1", "5555")
	}
	before := r.sandbox.journal.size
	err := r.sandbox.journal.compact()
	after := r.sandbox.journal.size
	if err != nil || after*5 > before || int64(len(readFile(t, dir))) != after {
		t.Errorf("%d before, %d after, %v", before, after, err)
	}
	r.charge("Shop.c2", "5555")
	equal(t, "records after a compaction", strings.Count(readFile(t, dir), "\n"), 2)
}

// Over HTTP, with the defaults: the real clock, a closed connection, and a client that follows no redirect.
func TestRealClock(t *testing.T) {
	paths := make(chan string, 10)
	var target *httptest.Server
	target = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path
		http.Redirect(w, r, target.URL+"/followed", http.StatusTemporaryRedirect)
	}))
	defer target.Close()
	s, err := New(Config{Tokens: []string{"previous"}, BaseURL: "http://sandbox.test",
		Config: kit.Config{Speed: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	body := strings.ReplaceAll(payJSON("Shop_1", "0700005555", ""), inboxURL, target.URL)
	request := httptest.NewRequest("POST", "/mobilemoney/v1", strings.NewReader(body))
	for name, value := range payHeaders {
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, request)
	equal(t, "status", recorder.Code, 201)
	equal(t, "Connection", recorder.Header().Get("Connection"), "close")
	for range 2 {
		equal(t, "path of the callback", <-paths, "/callbacks")
	}
	equal(t, "error of Close", s.Close(), nil)
}
