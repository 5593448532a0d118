// Package sandbox is an operator stub for trying the gateway. It serves the specification's protocol, a payment page
// and a control port. It keeps its work under each key, sends callbacks, and misbehaves on demand.
//
// The last four digits of user_msisdn (pay), gw-alias (charge) or X-Operator-ISE2 (SMS) select a row of the table in
// outcome.go (decision "sandbox"). The control port lists the effects, scripts single calls, sets the fault injection,
// and gives payments a final status.
//
// It is not part of the deployed gateway, checks no entitlement and moves no money. Its invariant: a key has at most
// one effect, for all requests under it, in any order, at any time. An effect is listed if and only if it happened.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/world/operators/kit"
)

// Delays and lifetimes. Speed divides the first group; the second group are timeouts, which never scale.
const (
	confirmDelay        = time.Second      // from the acceptance of a tpe or ussd payment to its final status
	pinLifetime         = 15 * time.Minute // specification, Limits
	defaultPageLifetime = 24 * time.Hour   // the gateway's own wait for a web payment
	minDelay            = 10 * time.Millisecond

	slowResponseDelay    = 60 * time.Second // outcome 1004
	earlyCallbackTimeout = 4 * time.Second  // the wait of outcome 1008 for its callback
)

// Config is the settings of a sandbox. Tokens and BaseURL are required, the rest has defaults.
type Config struct {
	// Dir is the folder of the journal, which keeps the state across restarts. Without it the state is in memory only.
	Dir string
	// Tokens are the bearer tokens of the operator API. It accepts several, for rotation.
	Tokens []string
	// ControlTokens are the bearer tokens of the control port. Without them it accepts every caller, which is only for
	// the local machine.
	ControlTokens []string
	// TestsTokens open only tests and slots of the control port, for merchants' engineers. They need ControlTokens, and
	// differ from those and from Tokens.
	TestsTokens []TestsToken
	// Faults is the fault injection at the start; none by default.
	Faults FaultSettings
	// BaseURL is the sandbox's own address, the base of payment_url and resourceURL.
	BaseURL string
	// Speed divides every delay and lifetime, as make run SPEED= does; 1 by default. Timeouts never scale.
	Speed float64
	// PageLifetime is how long the payment page takes a payment; 24 hours by default.
	PageLifetime time.Duration
	// Now is the clock, and After starts f in a goroutine after d. Both are the real ones by default.
	Now   func() time.Time
	After func(d time.Duration, f func())
	// Rand is the source of identifiers and tokens; crypto/rand by default.
	Rand io.Reader
	// Logf writes one line for each call and callback, without phone numbers, tokens or bodies; nothing by default.
	Logf func(format string, args ...any)
}

// Sandbox is one operator platform. It serves the operator names sandbox, orange and mtn alike.
type Sandbox struct {
	config    Config
	ctx       context.Context // Close cancels it, under mu
	cancel    context.CancelFunc
	timers    sync.WaitGroup      // functions that timers have started
	client    *http.Client        // posts callbacks
	pageTexts map[string]pageText // by language

	mu           sync.Mutex // guards all fields below
	journal      *journal   // nil: the state is in memory only
	transactions transactionIndex
	pins         map[string]*pin // by its digits
	slots        []*slot
	scripts      []*script
	faultPlan    *faultPlan
}

// New opens a sandbox. It reads the journal under Dir and resumes the work in progress. The error names the setting
// that is missing, or the fault in the journal.
func New(config Config) (*Sandbox, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	kit := kit.Config{
		Now: config.Now, After: config.After, Rand: config.Rand, Logf: config.Logf, Speed: config.Speed,
	}.WithDefaults()
	config.Now, config.After, config.Rand, config.Logf, config.Speed = kit.Now, kit.After, kit.Rand, kit.Logf, kit.Speed
	config.PageLifetime = cmp.Or(config.PageLifetime, defaultPageLifetime)
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	texts, err := parsePageTexts()
	if err != nil {
		return nil, fmt.Errorf("sandbox: payment page: %w", err)
	}
	s := &Sandbox{
		config:       config,
		client:       kit.Client,
		transactions: transactionIndex{byKey: map[[2]string]*transaction{}},
		pins:         map[string]*pin{},
		faultPlan:    newFaultPlan(config.Faults),
		pageTexts:    texts,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.openJournal(); err != nil {
		s.cancel()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return s, nil
}

// validate returns an error for a setting that is missing or contradicts another. The error quotes no token.
func (c *Config) validate() error {
	if len(c.Tokens) == 0 || c.BaseURL == "" {
		return errors.New("the settings Tokens and BaseURL are required")
	}
	privileged := slices.Concat(c.Tokens, c.ControlTokens)
	isPrivileged := func(t TestsToken) bool { return slices.Contains(privileged, t.Token) }
	isEmpty := func(t TestsToken) bool { return t.Token == "" }
	switch {
	case slices.Contains(privileged, "") || slices.ContainsFunc(c.TestsTokens, isEmpty):
		return errors.New("a token is empty: remove it or give it a value")
	case len(c.TestsTokens) > 0 && len(c.ControlTokens) == 0:
		return errors.New("TestsTokens is set, and the control port is open to every caller: set ControlTokens")
	case slices.ContainsFunc(c.TestsTokens, isPrivileged):
		return errors.New("a token is in TestsTokens and in Tokens or ControlTokens: use another one for tests")
	}
	return c.Faults.validate()
}

// Close stops the work in progress and closes the journal. A sandbox that opens the same Dir resumes that work.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	alreadyClosed := s.closed()
	s.cancel()
	s.mu.Unlock()
	if alreadyClosed {
		return nil
	}
	s.timers.Wait()
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

func (s *Sandbox) closed() bool { return s.ctx.Err() != nil }

// runAfter runs f after d, unless the sandbox is closed by then.
func (s *Sandbox) runAfter(d time.Duration, f func()) {
	s.config.After(max(d, 0), func() {
		s.mu.Lock()
		if s.closed() {
			s.mu.Unlock()
			return
		}
		s.timers.Add(1)
		s.mu.Unlock()
		defer s.timers.Done()
		f()
	})
}

// scaleDuration divides a delay or a lifetime by the sandbox's speed.
func (s *Sandbox) scaleDuration(d time.Duration) time.Duration {
	return max(time.Duration(float64(d)/s.config.Speed), minDelay)
}

// now is the clock in UTC, with the precision of the journal.
func (s *Sandbox) now() time.Time { return s.config.Now().UTC().Truncate(time.Millisecond) }

// Handler serves the operator API, the payment page and the control port. Paths may be percent-encoded, once.
func (s *Sandbox) Handler() http.Handler {
	mux := http.NewServeMux()
	operator := func(pattern string, next http.HandlerFunc) {
		mux.Handle(pattern, closeAfterResponse(requireToken(s.config.Tokens, next)))
	}
	operator("POST /payment/v1/"+endUser+"/transactions/amount", s.postCharge)
	operator("POST /payment/v1/{endUserId}/transactions/amount", respondNotFound)
	operator("POST /mobilemoney/v1", s.postPayment)
	operator("GET /mobilemoney/v1/getStatus/{order_id}", s.getStatus)
	operator("GET /mobilemoney/getstatus/v1/{order_id}", s.getStatus)
	operator("POST /smsmessaging/v1/outbound/{sender}/requests", s.postSMS)
	operator("GET /smsmessaging/v1/outbound/{sender}/requests/{id}/deliveryInfos", s.getDeliveryInfos)

	mux.HandleFunc("GET /pay/{token}", s.getPage)
	mux.HandleFunc("POST /pay/{token}", s.postPage)

	control := func(pattern string, next http.HandlerFunc) {
		mux.Handle(pattern, s.requireControlToken(nil, next))
	}
	control("GET /sandbox/v1/effects", handleControl(s, s.listEffects))
	control("GET /sandbox/v1/transactions", handleControl(s, s.listTransactions))
	control("POST /sandbox/v1/settle", handleControl(s, s.setFinalStatus))
	control("GET /sandbox/v1/steering", handleControl(s, s.showFaultSettings))
	control("PUT /sandbox/v1/steering", handleControl(s, s.replaceFaultSettings))
	control("GET /sandbox/v1/script", handleControl(s, s.listScripts))
	control("POST /sandbox/v1/script", handleControl(s, s.addScript))
	control("DELETE /sandbox/v1/script", handleControl(s, s.deleteScripts))
	control("/sandbox", respondUnknownControlPath)
	control("/sandbox/", respondUnknownControlPath)

	tests := func(pattern string, next http.HandlerFunc) {
		mux.Handle(pattern, s.requireControlToken(s.config.TestsTokens, next))
	}
	tests("POST /sandbox/v1/tests", handleControl(s, s.issueTestPIN))
	tests("GET /sandbox/v1/slots", handleControl(s, s.listSlots))
	tests("POST /sandbox/v1/slots", handleControl(s, s.bookSlot))
	tests("DELETE /sandbox/v1/slots/{id}", handleControl(s, s.freeSlot))

	mux.HandleFunc("/", respondNotFound)
	return mux
}

func respondNotFound(w http.ResponseWriter, _ *http.Request) {
	errorResponse("900906").write(w)
}
