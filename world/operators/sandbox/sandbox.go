// Package sandbox is the platform of the specification's own operator, for trying the gateway. It serves the
// specification's protocol, a payment page and a control port. Package kit has its calls, scripts, outcomes and
// callbacks; this package adds the journal, PINs, slots and the seeded fault injection.
//
// The last four digits of user_msisdn (pay), gw-alias (charge) or X-Operator-ISE2 (SMS) select an outcome of the kit's
// table (decision "sandbox"). The control port lists the effects, scripts single calls, sets the fault injection, and
// gives payments a final status.
//
// It is not part of the deployed gateway, checks no entitlement and moves no money. Its invariant: a key has at most
// one effect, for all requests under it, in any order, at any time, unless a hazard of the kit is on. An effect is
// listed if and only if it happened.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
)

// Delays and lifetimes, which Speed divides.
const (
	confirmDelay        = time.Second      // from the acceptance of a tpe or ussd payment to its final status
	pinLifetime         = 15 * time.Minute // specification, Limits
	defaultPageLifetime = 24 * time.Hour   // the gateway's own wait for a web payment
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
	// PageLifetime is how long the payment page takes a payment; 24 hours by default. Speed divides it.
	PageLifetime time.Duration
	// Config is the settings of the kit. Their Speed divides every delay and lifetime, as make run SPEED= does.
	kit.Config
}

// Sandbox is one operator platform. It serves the operator names sandbox, orange and mtn alike.
type Sandbox struct {
	*kit.Platform
	config Config
	pages  *pages

	// The platform's lock guards these.
	journal  *journal
	pins     *pinBox
	calendar *calendar
	injector *faultInjector
}

// New opens a sandbox. It reads the journal under Dir and resumes the work in progress. The error names the setting
// that is missing, or the fault in the journal.
func New(config Config) (*Sandbox, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	config.Config = config.WithDefaults()
	config.PageLifetime = cmp.Or(config.PageLifetime, defaultPageLifetime)
	config.BaseURL = strings.TrimRight(config.BaseURL, "/")
	texts, err := parsePageTexts()
	if err != nil {
		return nil, fmt.Errorf("sandbox: payment page: %w", err)
	}
	s := &Sandbox{config: config}
	s.pages, s.pins = &pages{s, texts}, &pinBox{s, map[string]*pin{}}
	s.journal, s.calendar = &journal{Sandbox: s}, &calendar{Sandbox: s}
	s.injector = &faultInjector{s, newFaultPlan(config.Faults)}
	s.Platform = kit.New(config.Config, kit.Spec{
		Operator: ownOperator, Operations: s.operations(), Authorize: func(c *kit.Call) kit.Response {
			return checkToken(c, s.config.Tokens)
		},
		Faults: faults, Applied: []string{"cut", "garbage", "html", "empty"}, Refusals: refusals,
		Hazards: []kit.Hazard{kit.NotFoundYet, kit.NotFound, kit.OtherAmount, kit.OtherCurrency},
		Extension: &kit.Extension{Match: matchesKey, Begin: s.begin, Draw: s.injector.drawMode, Record: s.logCall,
			Changed: func(t *kit.Transaction) { s.journal.saveTransaction(of(t)) }},
	})
	s.Locked(func() { err = s.journal.open() })
	if err != nil {
		s.Platform.Close()
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

// SetTokens replaces the bearer tokens of the operator API.
func (s *Sandbox) SetTokens(tokens ...string) {
	s.Locked(func() { s.config.Tokens = tokens })
}

// Close stops the work in progress and closes the journal. A sandbox that opens the same Dir resumes that work.
func (s *Sandbox) Close() error {
	if !s.Platform.Close() || s.journal.file == nil {
		return nil
	}
	return s.journal.file.Close()
}

// Hash returns a hash of the state that can change a later response.
func (s *Sandbox) Hash() uint64 {
	return s.Platform.Hash(s.pins.byCode, s.calendar.slots, s.injector.plan)
}

// Handler serves the operator API, the payment page and the control port. Paths may be percent-encoded, once.
//
// It closes the connection after each call of the operator API. On a reused one, some clients take a cut for a stale
// connection and send the request again, so outcome 1005 would be invisible to them.
func (s *Sandbox) Handler() http.Handler {
	next := s.Platform.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); slices.Contains(
			[]string{"payment", "mobilemoney", "smsmessaging"}, first) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// operations are the operator API, the payment page and the control port.
func (s *Sandbox) operations() []kit.Operation {
	lookup := kit.Operation{Name: kindLookup, Key: "path:order_id", First: true, OnlyNamed: true, Serve: s.getStatus}
	operation := func(pattern string, o kit.Operation) kit.Operation {
		o.Pattern = pattern
		return o
	}
	notFound := kit.Operation{Name: "unknown", First: true, Serve: respondNotFound}
	port := controlPort{s}
	control, tests := s.config.ControlTokens, s.config.ControlTokens
	for _, t := range s.config.TestsTokens {
		tests = append(slices.Clip(tests), t.Token)
	}
	return []kit.Operation{
		s.call("POST /payment/v1/"+endUser+"/transactions/amount", kindCharge, s.parseCharge),
		operation("POST /payment/v1/{endUserId}/transactions/amount", notFound),
		s.call("POST /mobilemoney/v1", kindPayment, s.parsePayment),
		operation("GET /mobilemoney/v1/getStatus/{order_id}", lookup),
		operation("GET /mobilemoney/getstatus/v1/{order_id}", lookup),
		s.call("POST /smsmessaging/v1/outbound/{sender}/requests", kindSMS, s.parseSMS),
		operation("GET /smsmessaging/v1/outbound/{sender}/requests/{id}/deliveryInfos",
			kit.Operation{Name: "deliveryInfos", First: true, OnlyNamed: true, Serve: s.getDeliveryInfos}),

		{Pattern: "GET /pay/{token}", Plain: true, Serve: s.pages.getPage},
		{Pattern: "POST /pay/{token}", Plain: true, Serve: s.pages.postPage},

		open(control, kit.Control("GET /sandbox/v1/effects", port.listEffects)),
		open(control, kit.Control("GET /sandbox/v1/statement", port.writeStatement)),
		open(control, kit.Control("GET /sandbox/v1/transactions", port.listTransactions)),
		open(control, kit.Control("POST /sandbox/v1/settle", port.setFinalStatus)),
		open(control, kit.Control("GET /sandbox/v1/steering", s.injector.showFaultSettings)),
		open(control, kit.Control("PUT /sandbox/v1/steering", s.injector.replaceFaultSettings)),
		open(control, kit.Control("GET /sandbox/v1/script", port.listScripts)),
		open(control, kit.Control("POST /sandbox/v1/script", port.addScript)),
		open(control, kit.Control("DELETE /sandbox/v1/script", port.deleteScripts)),
		open(control, kit.Operation{Pattern: "/sandbox", Plain: true, Serve: respondUnknownControlPath}),
		open(control, kit.Operation{Pattern: "/sandbox/", Plain: true, Serve: respondUnknownControlPath}),
		open(tests, kit.Control("POST /sandbox/v1/tests", s.pins.issueTestPIN)),
		open(tests, kit.Control("GET /sandbox/v1/slots", s.calendar.listSlots)),
		open(tests, kit.Control("POST /sandbox/v1/slots", s.calendar.bookSlot)),
		open(tests, kit.Control("DELETE /sandbox/v1/slots/{id}", s.calendar.freeSlot)),

		{Pattern: "/", Plain: true, Serve: respondNotFound},
	}
}

// open serves a path to callers with one of the tokens, and to all callers if there is no token.
func open(tokens []string, o kit.Operation) kit.Operation {
	serve := o.Serve
	o.Serve = func(c *kit.Call) kit.Response {
		if len(tokens) > 0 {
			if refused := checkToken(c, tokens); refused.Status != 0 {
				return refused
			}
		}
		return serve(c)
	}
	return o
}

func respondNotFound(*kit.Call) kit.Response { return errorResponse("900906") }
