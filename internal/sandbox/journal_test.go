package sandbox

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func readFile(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// restart closes a sandbox and opens another over its folder.
func (r *rig) restart(dir string) *rig {
	r.Helper()
	if err := r.sandbox.Close(); err != nil {
		r.Fatal(err)
	}
	return start(r.T, dir, r.clock, r.inbox, 2)
}

func TestStateSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, newFakeClock(), newInbox(t), 1)
	charge := r.charge("Shop.c1", "5555")
	r.charge("Shop.c2", "1001")
	r.pay("tpe", "Shop_1", "0700005555")
	web := r.payWeb("Shop_2", "")
	r.sms("Shop.s1", "5555")
	pin := r.test("")
	var booked slot
	r.control("POST", "/sandbox/v1/slots", `{"merchant":"Shop"}`, 201, &booked)

	r = r.restart(dir)
	if again := r.charge("Shop.c1", "5555"); again.body != charge.body {
		t.Errorf("charge: %s", again.body)
	}
	if again := r.charge("Shop.c2", "5555"); again.word() != "403 POL0253" {
		t.Errorf("refused charge: %s", again.word())
	}
	if again := r.sms("Shop.s1", "5555"); again.word() != "409 SVC0005" {
		t.Errorf("SMS: %s", again.word())
	}
	r.clock.Advance(time.Second)
	if status := r.status("Shop_1"); status != successful {
		t.Errorf("payment: %s", status)
	}
	if answer := r.confirm(web.path(), pin.MSISDN, pin.PIN); answer.status != 303 {
		t.Errorf("page: %s", answer.word())
	}
	for key, want := range map[string]int{"c1": 1, "c2": 0, "Shop_1": 1, "Shop_2": 1, "s1": 1} {
		if effects := r.effects(key); len(effects) != want {
			t.Errorf("%s: %+v", key, effects)
		}
	}
	var slots []slot
	r.control("GET", "/sandbox/v1/slots", "", 200, &slots)
	if len(slots) != 1 || slots[0] != booked {
		t.Errorf("slots: %+v", slots)
	}
	r.control("DELETE", "/sandbox/v1/slots/"+booked.ID, "", 204, nil)

	r = r.restart(dir)
	r.control("GET", "/sandbox/v1/slots", "", 200, &slots)
	if len(slots) != 0 {
		t.Errorf("slots: %+v", slots)
	}
	if answer := r.confirm(r.payWeb("Shop_3", "").path(), pin.MSISDN, pin.PIN); answer.status != 403 {
		t.Errorf("a used PIN: %s", answer.word())
	}
}

// What was under way goes on: a slow call, a final status, a callback that was refused.
func TestWorkSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, newFakeClock(), newInbox(t), 1)
	r.inbox.answer = []int{503}
	r.pay("tpe", "Shop_1", "0700005555")
	r.clock.Advance(time.Second)
	slow := r.later(func() got { return r.charge("Shop.c1", "1004") })
	r.clock.Advance(900 * time.Millisecond)
	if told := r.inbox.statuses(t); told != successful {
		t.Fatalf("told %q", told)
	}
	r2 := r.restart(dir)
	if answer := <-slow; !answer.cut {
		t.Errorf("slow call: %s", answer.word())
	}
	if answer := r2.charge("Shop.c1", "1004"); answer.word() != "409 SVC0005" {
		t.Errorf("in flight: %s", answer.word())
	}
	r2.clock.Advance(time.Minute)
	if told := r2.inbox.statuses(t); told != "successful successful" {
		t.Errorf("told %q", told)
	}
	if effects := r2.effects("c1"); len(effects) != 1 {
		t.Errorf("effects: %+v", effects)
	}
}

func TestTornLastLineIsDropped(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, newFakeClock(), newInbox(t), 1)
	r.charge("Shop.c1", "5555")
	if err := r.sandbox.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, journalName)
	if err := os.WriteFile(path, []byte(readFile(t, dir)+`{"transaction":{"ki`), 0o600); err != nil {
		t.Fatal(err)
	}
	r = start(t, dir, r.clock, r.inbox, 2)
	if effects := r.effects("c1"); len(effects) != 1 {
		t.Errorf("effects: %+v", effects)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestSpoiltFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journalName), []byte("nonsense\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Config{Dir: dir, Tokens: []string{"t"}, BaseURL: "http://x"})
	if err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
}

func TestJournalIsCompacted(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, newFakeClock(), newInbox(t), 1)
	for range 20 {
		r.charge("Shop.c1", "5555")
	}
	r.sandbox.mu.Lock()
	before := r.sandbox.journal.size
	err := r.sandbox.compact()
	after := r.sandbox.journal.size
	r.sandbox.mu.Unlock()
	if err != nil || after*5 > before || int64(len(readFile(t, dir))) != after {
		t.Errorf("%d before, %d after, %v", before, after, err)
	}
	r.charge("Shop.c2", "5555")
	if strings.Count(readFile(t, dir), "\n") != 2 {
		t.Errorf("%s", readFile(t, dir))
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, config := range []Config{{}, {Tokens: []string{"t"}}, {BaseURL: "http://x"}, {Tokens: []string{""}, BaseURL: "http://x"}} {
		if _, err := New(config); err == nil {
			t.Errorf("%+v", config)
		}
	}
	s, err := New(Config{Tokens: []string{"t"}, BaseURL: "http://x/", Speed: 60})
	if err != nil {
		t.Fatal(err)
	}
	if s.scaled(time.Minute) != time.Second || s.scaled(time.Millisecond) != leastDelay || s.config.SlowAnswer != time.Minute {
		t.Errorf("%v %v %v", s.scaled(time.Minute), s.scaled(time.Millisecond), s.config.SlowAnswer)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The defaults: the real clock, and a client that follows no redirect.
func TestRealClock(t *testing.T) {
	told := make(chan string, 10)
	var target *httptest.Server
	target = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told <- r.URL.Path
		if r.URL.Path == "/callbacks" {
			http.Redirect(w, r, target.URL+"/followed", http.StatusTemporaryRedirect)
		}
	}))
	defer target.Close()
	s, err := New(Config{Tokens: []string{"previous"}, BaseURL: "http://sandbox.test", Speed: 1000})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, inbox: &inbox{server: target}}
	request := httptest.NewRequest("POST", "/mobilemoney/v1", strings.NewReader(r.payJSON("Shop_1", "0700005555", "")))
	for name, value := range payHeaders {
		request.Header.Set(name, value)
	}
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, request)
	if recorder.Code != 201 {
		t.Fatalf("%d %s", recorder.Code, recorder.Body)
	}
	for range 2 {
		if path := <-told; path != "/callbacks" {
			t.Errorf("told %s", path)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
