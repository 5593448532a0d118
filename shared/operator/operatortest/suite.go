package operatortest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// maxAnswer is more than any answer that a driver may read into memory, in bytes.
const maxAnswer = 1 << 20

// Times of a call: what one gets that is answered, and what one gets that is not.
const (
	plenty = 15 * time.Second
	little = 150 * time.Millisecond
)

// Suite describes the driver under test.
type Suite struct {
	// Operator is an operator of the table that the driver serves.
	Operator string
	// New makes the driver with an account for Operator at a base URL.
	New func(t *testing.T, baseURL string) operator.Driver
	// Success, Refusal and NotApplied are the platform's answers to an operation's sample call: a complete success, a
	// final refusal, and a refusal of which it is certain that nothing was applied.
	Success    func(op Operation) Step
	Refusal    func(op Operation) Step
	NotApplied func(op Operation) Step
	// Private are more texts that may stand in no fault, such as the account's access token.
	Private []string
}

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	t.Run("account", s.account)
	for _, op := range Operations(s.Operator, "") {
		t.Run(op.Name, func(t *testing.T) {
			t.Run("certain", func(t *testing.T) { s.certain(t, op) })
			t.Run("uncertain", func(t *testing.T) { s.uncertain(t, op) })
			t.Run("silence", func(t *testing.T) { s.silence(t, op) })
			t.Run("nobody listens", func(t *testing.T) { s.nobodyListens(t, op) })
			t.Run("redirect is not followed", func(t *testing.T) { s.redirect(t, op) })
			t.Run("no time left", func(t *testing.T) { s.noTime(t, op) })
			t.Run("repeats send the same", func(t *testing.T) { s.repeats(t, op) })
		})
	}
	t.Run("in parallel", s.parallel)
	t.Run("lookup", s.lookup)
}

// account: the driver names the account that a new call would use, and a call may be pinned to it.
func (s Suite) account(t *testing.T) {
	peer := NewPeer(t)
	driver := s.New(t, peer.URL)
	name, err := driver.Account(t.Context(), s.Operator)
	if err != nil || name == "" {
		t.Fatalf("got %q, %v", name, err)
	}
	if _, err := driver.Account(t.Context(), "nobody"); fault.As(err) == nil || fault.As(err).Kind != fault.OperatorRefusedUs {
		t.Errorf("an operator without credentials: %v", err)
	}
	for _, op := range Operations(s.Operator, name) {
		peer.Script(s.Success(op))
		if result := s.run(t, driver, op); result.Outcome != operator.Done {
			t.Errorf("%s pinned to %q: %v", op.Name, name, result.Fault)
		}
	}
	for _, op := range Operations(s.Operator, "gone") {
		peer.Forget()
		result := s.run(t, driver, op)
		if result.Outcome != operator.Released || len(peer.Requests()) != 0 {
			t.Errorf("%s with an account that is gone: outcome %d", op.Name, result.Outcome)
		}
	}
}

// certain: the three outcomes that an answer proves, each with one request.
func (s Suite) certain(t *testing.T, op Operation) {
	cases := []struct {
		name    string
		step    Step
		outcome operator.Outcome
	}{
		{"success", s.Success(op), operator.Done},
		{"refusal", s.Refusal(op), operator.Refused},
		{"not applied", s.NotApplied(op), operator.Released},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			peer := NewPeer(t)
			peer.Script(c.step)
			s.expect(t, peer, op, c.outcome)
		})
	}
}

// uncertain: whatever else comes back proves nothing, and is not sent again on a fresh connection.
func (s Suite) uncertain(t *testing.T, op Operation) {
	peer := NewPeer(t)
	cases := []struct {
		name string
		step Step
	}{
		{"cut", Cut()},
		{"half an answer", Half(http.StatusCreated, `{"half":"of an answer"}`)},
		{"not HTTP", Raw("\x00\x01 garbage\r\n\r\n")},
		{"oversize", Huge(http.StatusCreated, maxAnswer)},
		{"HTML", Answer(http.StatusOK, "<html>OK</html>", "Content-Type", "text/html")},
		{"nothing", Answer(http.StatusOK, "")},
		{"no content", Answer(http.StatusNoContent, "")},
		{"empty object", Answer(http.StatusCreated, "{}")},
		{"array", Answer(http.StatusCreated, "[]")},
		{"null", Answer(http.StatusCreated, "null")},
		{"two values", Answer(http.StatusCreated, "{}{}")},
		{"bare 400", Answer(http.StatusBadRequest, "")},
		{"bare 404", Answer(http.StatusNotFound, "<html>not found</html>")},
		{"bare 500", Answer(http.StatusInternalServerError, "")},
		{"bare 502", Answer(http.StatusBadGateway, "<html>bad gateway</html>")},
		{"bare 503", Answer(http.StatusServiceUnavailable, "<html>try later</html>")},
		{"bare 504", Answer(http.StatusGatewayTimeout, "")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			peer.Forget()
			peer.Script(c.step)
			s.expect(t, peer, op, operator.Unknown)
		})
	}
}

// silence: a request that arrived and is never answered may have been applied; the driver returns when its time is over.
func (s Suite) silence(t *testing.T, op Operation) {
	peer := NewPeer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	silent := peer.Silent()
	peer.Script(func(w http.ResponseWriter, r *http.Request) {
		cancel() // the call's time is over once the request is here
		silent(w, r)
	})
	result, _ := op.Run(ctx, s.New(t, peer.URL))
	s.check(t, result)
	if result.Outcome != operator.Unknown {
		t.Errorf("outcome %d: %v", result.Outcome, result.Fault)
	}
	peer.Script(silent)
	short, cancelShort := context.WithTimeout(t.Context(), little)
	defer cancelShort()
	result, _ = op.Run(short, s.New(t, peer.URL))
	s.check(t, result)
	if result.Outcome == operator.Done || result.Outcome == operator.Refused {
		t.Errorf("outcome %d without an answer", result.Outcome)
	}
}

// nobodyListens: without a connection nothing was sent.
func (s Suite) nobodyListens(t *testing.T, op Operation) {
	peer := NewPeer(t)
	peer.server.Close()
	result := s.expect(t, peer, op, operator.Released)
	if result.Fault.Kind != fault.OperatorDown {
		t.Errorf("fault %d", result.Fault.Kind)
	}
}

// redirect: a redirect is an answer like any other; the request goes nowhere else.
func (s Suite) redirect(t *testing.T, op Operation) {
	peer, elsewhere := NewPeer(t), NewPeer(t)
	elsewhere.Script(s.Success(op))
	for _, status := range []int{http.StatusMovedPermanently, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		peer.Forget()
		peer.Script(Answer(status, "{}", "Location", elsewhere.URL))
		s.expect(t, peer, op, operator.Unknown)
	}
	if len(elsewhere.Requests()) != 0 {
		t.Error("a redirect was followed")
	}
}

// noTime: a call whose time is over before it starts sends nothing.
func (s Suite) noTime(t *testing.T, op Operation) {
	peer := NewPeer(t)
	peer.Script(s.Success(op))
	driver := s.New(t, peer.URL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result, _ := op.Run(ctx, driver)
	if result.Outcome == operator.Done || len(peer.Requests()) != 0 {
		t.Errorf("outcome %d, %d requests", result.Outcome, len(peer.Requests()))
	}
	s.check(t, result)
}

// repeats: the same call gives the same request, with the key in it.
func (s Suite) repeats(t *testing.T, op Operation) {
	peer := NewPeer(t)
	peer.Script(s.Success(op))
	driver := s.New(t, peer.URL)
	s.run(t, driver, op)
	s.run(t, driver, op)
	requests := peer.Requests()
	if len(requests) != 2 || requests[0].Body != requests[1].Body || requests[0].Path != requests[1].Path {
		t.Fatalf("the requests differ: %d of them", len(requests))
	}
	if !strings.Contains(requests[0].Body+requests[0].Path, op.Key) {
		t.Error("the key is not in the request")
	}
}

// parallel: a driver serves many calls at once (for the race detector).
func (s Suite) parallel(t *testing.T) {
	peers := map[string]*Peer{}
	var group sync.WaitGroup
	for _, op := range Operations(s.Operator, "") {
		peer := NewPeer(t)
		peer.Script(s.Success(op))
		peers[op.Name] = peer
		driver := s.New(t, peer.URL)
		for range 8 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), plenty)
				defer cancel()
				if result, _ := op.Run(ctx, driver); result.Outcome != operator.Done {
					t.Errorf("%s: %v", op.Name, result.Fault)
				}
			})
		}
	}
	group.Wait()
	for name, peer := range peers {
		if len(peer.Requests()) != 8 {
			t.Errorf("%s: %d requests for 8 calls", name, len(peer.Requests()))
		}
	}
}

// lookup: a status lookup that is not answered knows nothing.
func (s Suite) lookup(t *testing.T) {
	peer := NewPeer(t)
	reader, ok := s.New(t, peer.URL).(operator.StatusReader)
	row, _ := operator.Find(s.Operator)
	if ok != row.StatusLookup {
		t.Fatalf("the row says %v, the driver %v", row.StatusLookup, ok)
	}
	if !ok {
		return
	}
	for name, step := range map[string]Step{
		"silence": peer.Silent(), "cut": Cut(), "HTML": Answer(http.StatusOK, "<html>"), "empty": Answer(http.StatusOK, "{}"),
		"bare 404": Answer(http.StatusNotFound, ""), "bare 500": Answer(http.StatusInternalServerError, ""),
	} {
		peer.Script(step)
		ctx, cancel := context.WithTimeout(t.Context(), little)
		answer := reader.PaymentStatus(ctx, Status(s.Operator, ""))
		cancel()
		if answer.Known || answer.NotFound || answer.Status != "" || answer.Cause == nil {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}

// expect makes a fresh driver's call, and checks its outcome and that it sent one request at most.
func (s Suite) expect(t *testing.T, peer *Peer, op Operation, outcome operator.Outcome) operator.Result {
	t.Helper()
	result := s.run(t, s.New(t, peer.URL), op)
	if result.Outcome != outcome {
		t.Fatalf("outcome %d, want %d: %v", result.Outcome, outcome, result.Fault)
	}
	if sent := len(peer.Requests()); sent > 1 {
		t.Fatalf("%d requests", sent)
	}
	return result
}

// run makes a call with time enough and checks what holds of every result.
func (s Suite) run(t *testing.T, driver operator.Driver, op Operation) operator.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), plenty)
	defer cancel()
	result, page := op.Run(ctx, driver)
	s.check(t, result)
	complete := page.PayToken != "" && page.PaymentURL != "" && page.NotifToken != ""
	if op.Name == "web" && complete != (result.Outcome == operator.Done) {
		t.Error("a page comes with Done, and with Done alone")
	}
	return result
}

// faultKinds are the kinds of faults that may come with an outcome.
var faultKinds = map[operator.Outcome][]fault.Kind{
	operator.Unknown:  {fault.OutcomeUnknown},
	operator.Refused:  {fault.OperatorError},
	operator.Released: {fault.OperatorError, fault.OperatorRefusedUs, fault.OperatorDown},
}

// check: a fault with every outcome but Done, of a kind that fits, and nothing private in it.
func (s Suite) check(t *testing.T, result operator.Result) {
	t.Helper()
	if result.Outcome == operator.Done {
		if result.Fault != nil {
			t.Errorf("a fault with Done: %v", result.Fault)
		}
		return
	}
	if result.Fault == nil || result.Fault.Cause == nil {
		t.Fatal("no fault, or one without a cause")
	}
	fits := false
	for _, kind := range faultKinds[result.Outcome] {
		fits = fits || result.Fault.Kind == kind
	}
	if !fits || (result.Fault.Operator != nil) != (result.Fault.Kind == fault.OperatorError) {
		t.Errorf("outcome %d with fault kind %d", result.Outcome, result.Fault.Kind)
	}
	for _, private := range append([]string{SampleToken, SampleAlias, SampleOTP, SampleMSISDN[1:], "ise2-very-private"}, s.Private...) {
		if strings.Contains(result.Fault.Error(), private) {
			t.Errorf("%q is in the fault's text", private)
		}
	}
}
