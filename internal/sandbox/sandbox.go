// Package sandbox is an operator platform to try the gateway against: it speaks the specification's own protocol on the
// southbound side, keeps what it did under each key, calls back, shows the payment page, and misbehaves on demand.
//
// Who pays decides what happens: the last four digits of user_msisdn (pay), gw-alias (charge) or X-Operator-ISE2 (SMS)
// pick a row of the table in outcome.go (decision "sandbox"). A control port lists what really happened, and lets tests
// script single calls, steer a seeded unkindness and settle payments by hand.
//
// It is no part of what ships, checks no entitlement and moves no money. Its invariant: a key has at most one effect,
// whatever is sent under it, in whatever order, at whatever time; an effect is listed if and only if it happened.
package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Defaults of Config. Delays and lifetimes are divided by Speed, timeouts are not.
const (
	DefaultConfirmDelay         = time.Second      // a tpe or ussd payment's final status after its acceptance
	DefaultPINLifetime          = 15 * time.Minute // specification, Limits
	DefaultPageLifetime         = 24 * time.Hour   // how long the page takes a payment; the gateway's own waiting time
	DefaultSlowResponseDelay    = 60 * time.Second // outcome 1004; a timeout: never scaled
	DefaultEarlyCallbackTimeout = 4 * time.Second  // how long outcome 1008 waits for its callback; a timeout: never scaled
	callbackTimeout             = 10 * time.Second // one callback attempt
	minDelay                    = 10 * time.Millisecond
)

// DefaultCallbackRetries are the waits after each failed attempt of a callback: with the first attempt, ten in all.
func DefaultCallbackRetries() []time.Duration {
	var waits []time.Duration
	for i := range 9 {
		waits = append(waits, time.Second<<i)
	}
	return waits
}

// Config is what a sandbox needs. Tokens and BaseURL are required, the rest has defaults.
type Config struct {
	// Dir is the folder in which what the operator knows is kept across restarts, in one file. "": memory alone.
	Dir string
	// Tokens are the bearer tokens that are accepted, several at once so that they can be rotated.
	Tokens []string
	// ControlTokens are the bearer tokens that the control port asks for; none: it answers everybody, which is for the local
	// machine alone.
	ControlTokens []string
	// TestsTokens are narrower ones, for merchants' engineers: they issue a PIN with its dummy number, and book, list and free
	// slots. They are none of Tokens or ControlTokens, and need the latter.
	TestsTokens []string
	// Faults is the unkindness to begin with; none by default.
	Faults FaultSettings
	// BaseURL is the sandbox's own address without a trailing slash: the base of payment_url and resourceURL.
	BaseURL string
	// Speed divides every delay and lifetime, as make run SPEED= does; 0 means 1. Timeouts never scale.
	Speed float64
	// Now is the clock, After starts f in a goroutine once d has passed. The real ones by default; tests give their own.
	Now   func() time.Time
	After func(d time.Duration, f func())
	// Rand is where identifiers and tokens come from; crypto/rand by default.
	Rand io.Reader
	// Logf gets one line a call and a callback, without numbers, tokens or bodies; nil: no log.
	Logf func(format string, args ...any)
	// Client posts callbacks. By default one with a timeout of 10 s that follows no redirect.
	Client *http.Client
	// ConfirmDelay, PINLifetime, PageLifetime, SlowResponseDelay, EarlyCallbackTimeout and Retries: see the defaults of the same names.
	ConfirmDelay         time.Duration
	PINLifetime          time.Duration
	PageLifetime         time.Duration
	SlowResponseDelay    time.Duration
	EarlyCallbackTimeout time.Duration
	CallbackRetries      []time.Duration
}

// Sandbox is one operator platform. It serves the operator names sandbox, orange and mtn alike.
type Sandbox struct {
	config       Config
	ctx          context.Context // ends with Close: what is waiting or posting stops
	cancel       context.CancelFunc
	timers       sync.WaitGroup // what timers started
	pageTemplate *template.Template

	mu           sync.Mutex // guards all that follows
	closed       bool
	journal      *journal
	transactions transactionIndex
	pins         []*pin
	slots        []*slot
	scripts      []*script
	faultPlan    *faultPlan
}

// New opens the sandbox: it reads what an earlier one kept under Dir and goes on with what was under way. The error
// says which setting is missing, or what is wrong with the file.
func New(config Config) (*Sandbox, error) {
	err := config.validate()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	withDefaults(&config)
	page, err := template.New("page").Parse(pageSource)
	if err != nil {
		return nil, fmt.Errorf("sandbox: payment page: %w", err)
	}
	s := &Sandbox{config: config, pageTemplate: page, transactions: newTransactionIndex(), faultPlan: newFaultPlan(config.Faults)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	err = s.openJournal()
	if err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// validate tells what is missing or contradicts itself. It quotes no token.
func (c *Config) validate() error {
	if len(c.Tokens) == 0 || c.BaseURL == "" {
		return errors.New("the settings Tokens and BaseURL are required")
	}
	privileged := slices.Concat(c.Tokens, c.ControlTokens)
	switch {
	case slices.Contains(privileged, "") || slices.Contains(c.TestsTokens, ""):
		return errors.New("a token is empty")
	case len(c.TestsTokens) > 0 && len(c.ControlTokens) == 0:
		return errors.New("the setting TestsTokens needs ControlTokens: without these the control port answers everybody")
	case slices.ContainsFunc(c.TestsTokens, func(token string) bool { return slices.Contains(privileged, token) }):
		return errors.New("a token for tests is another one than those that open more")
	}
	err := c.Faults.validate()
	if err != nil {
		return fmt.Errorf("steering: %w", err)
	}
	return nil
}

func withDefaults(c *Config) {
	if c.Speed <= 0 {
		c.Speed = 1
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.After == nil {
		c.After = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	if c.Client == nil {
		c.Client = &http.Client{
			Timeout:       callbackTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if c.CallbackRetries == nil {
		c.CallbackRetries = DefaultCallbackRetries()
	}
	setDefault(&c.ConfirmDelay, DefaultConfirmDelay)
	setDefault(&c.PINLifetime, DefaultPINLifetime)
	setDefault(&c.PageLifetime, DefaultPageLifetime)
	setDefault(&c.SlowResponseDelay, DefaultSlowResponseDelay)
	setDefault(&c.EarlyCallbackTimeout, DefaultEarlyCallbackTimeout)
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Close ends what is under way and closes the file. What was accepted goes on when a sandbox opens the same Dir again.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.cancel()
	s.mu.Unlock()
	s.timers.Wait()
	return s.journal.close()
}

// runAfter runs f once d has passed, unless the sandbox is closed by then.
func (s *Sandbox) runAfter(d time.Duration, f func()) {
	s.config.After(max(d, 0), func() {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return
		}
		s.timers.Add(1)
		s.mu.Unlock()
		defer s.timers.Done()
		f()
	})
}

// scaleDuration is a delay or a lifetime at the sandbox's speed.
func (s *Sandbox) scaleDuration(d time.Duration) time.Duration {
	return max(time.Duration(float64(d)/s.config.Speed), minDelay)
}

// now is the clock in UTC with the precision that is kept.
func (s *Sandbox) now() time.Time { return s.config.Now().UTC().Truncate(time.Millisecond) }

// Handler serves the operator API, the payment page and the control port. Paths may come percent-encoded, once.
func (s *Sandbox) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /payment/v1/{endUserId}/transactions/amount", s.requireOperatorToken(s.postCharge))
	mux.Handle("POST /mobilemoney/v1", s.requireOperatorToken(s.postPayment))
	mux.Handle("GET /mobilemoney/v1/getStatus/{order_id}", s.requireOperatorToken(s.getStatus))
	mux.Handle("GET /mobilemoney/getstatus/v1/{order_id}", s.requireOperatorToken(s.getStatus))
	mux.Handle("POST /smsmessaging/v1/outbound/{sender}/requests", s.requireOperatorToken(s.postSMS))
	mux.Handle("GET /smsmessaging/v1/outbound/{sender}/requests/{id}/deliveryInfos", s.requireOperatorToken(s.getDeliveryInfos))
	mux.HandleFunc("GET /pay/{token}", s.getPage)
	mux.HandleFunc("POST /pay/{token}", s.postPage)
	mux.Handle("GET /sandbox/v1/effects", s.requireControlToken(s.getEffects))
	mux.Handle("GET /sandbox/v1/transactions", s.requireControlToken(s.getTransactions))
	mux.Handle("POST /sandbox/v1/settle", s.requireControlToken(s.postFinalStatus))
	mux.Handle("POST /sandbox/v1/tests", s.requireTestsToken(s.postTestPIN))
	mux.Handle("GET /sandbox/v1/slots", s.requireTestsToken(s.getSlots))
	mux.Handle("POST /sandbox/v1/slots", s.requireTestsToken(s.postSlot))
	mux.Handle("DELETE /sandbox/v1/slots/{id}", s.requireTestsToken(s.deleteSlot))
	mux.Handle("GET /sandbox/v1/steering", s.requireControlToken(s.getFaultSettings))
	mux.Handle("PUT /sandbox/v1/steering", s.requireControlToken(s.putFaultSettings))
	mux.Handle("GET /sandbox/v1/script", s.requireControlToken(s.getScripts))
	mux.Handle("POST /sandbox/v1/script", s.requireControlToken(s.postScript))
	mux.Handle("DELETE /sandbox/v1/script", s.requireControlToken(s.deleteScripts))
	unknown := s.requireControlToken(func(w http.ResponseWriter, _ *http.Request) {
		writeControlError(w, http.StatusNotFound, "the control port has no such method and path")
	})
	mux.Handle("/sandbox", unknown)
	mux.Handle("/sandbox/", unknown)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		errorResponse(http.StatusNotFound, "900906", nil).write(w)
	})
	return mux
}
