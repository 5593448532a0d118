package kit

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// SlowDelay is the delay of a response in the mode slow. It never scales.
const SlowDelay = 60 * time.Second

const (
	callbackTimeout      = 10 * time.Second // one delivery attempt; never scaled
	earlyCallbackTimeout = 4 * time.Second  // the wait of a response for its early callback; never scaled
	minDelay             = 10 * time.Millisecond
)

// Config is the settings of a platform. All have defaults. With its own Now, After, Rand and Post a platform starts no
// goroutine, reads no clock and never waits: the simulator runs it so.
type Config struct {
	// Now is the clock, and After runs f after d, by default in a goroutine. Both are the real ones by default.
	Now   func() time.Time
	After func(d time.Duration, f func())
	// Rand is the source of identifiers and tokens; crypto/rand by default.
	Rand io.Reader
	// Client sends callbacks. The default follows no redirect and waits for 10 seconds.
	Client *http.Client
	// Post sends a callback instead of Client. It must not wait: it calls done with the status, or 0 and an error, when
	// the response has come.
	Post func(c Outgoing, done func(status int, err error))
	// Logf writes one line for each call and callback, without numbers, tokens or bodies; nothing by default.
	Logf func(format string, args ...any)
	// Speed divides every delay of Platform.After; 1 by default. Timeouts and the lives of tokens never scale.
	Speed float64
	// Draw returns the outcome of a new transaction, in place of the payer's digits. Its payer needs no page.
	Draw func(kind string, k Keys) Outcome
	// Hazards are the broken promises of the platform; none by default.
	Hazards Hazards
	// Applied is called with each effect when it happens, under the lock; nothing by default.
	Applied func(e Effect)
}

// WithDefaults returns the settings with the defaults of those that are not set.
func (config Config) WithDefaults() Config {
	config.Speed = cmp.Or(max(config.Speed, 0), 1)
	config.Rand = cmp.Or(config.Rand, rand.Reader)
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.After == nil {
		config.After = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	if config.Client == nil {
		refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		config.Client = &http.Client{Timeout: callbackTimeout, CheckRedirect: refuse}
	}
	if config.Applied == nil {
		config.Applied = func(Effect) {}
	}
	if config.Logf == nil {
		config.Logf = func(string, ...any) {}
	}
	return config
}

// Spec describes an operator's platform.
type Spec struct {
	// Operator is the name in the effects.
	Operator string
	// Operations are the endpoints. The kit adds those of Hosted.
	Operations []Operation
	// Authorize returns the refusal of a call, or the zero Response; nil lets all calls pass.
	Authorize func(c *Call) Response
	// Errors are the operator's errors, and ErrorForm makes their responses.
	Errors    []Error
	ErrorForm func(e Error, detail string) Response
	// NamesKey is true if an error of a script has the key of the call as its detail.
	NamesKey bool
	// Down is the error of the first call of 1009; "" for a bare 503.
	Down string
	// Faults are further forms of faults, by name. They replace the others of the same name. Those of Applied take
	// effect, unless the mode ends in "-unapplied".
	Faults  map[string]Response
	Applied []string
	// Refusals are modes that the operations understand by Call.Mode.
	Refusals []string
	// Hazards are further modes that they understand, which no script has: Config.Hazards.Pick returns them.
	Hazards []Hazard
	// Quirks are the names of the switches.
	Quirks []string
	// Numbers are the operator's own test numbers, as the protocol writes them.
	Numbers map[string]Outcome
	// TokenLife is the life of a token; 0 for an operator without tokens.
	TokenLife time.Duration
	// Callback makes the callback that reports a result. Without a body it is not sent.
	Callback func(t *Transaction, r Result) Callback
	// StatementAmount writes the amount of an effect in its currency, for a statement; nil for the request's own.
	StatementAmount func(e Effect) string
	// End is called when a transaction is due for its end, also if its outcome is Undecided; nil does nothing.
	End func(t *Transaction)
	// Hosted describes the pages of payments; nil for an operator without them.
	Hosted *Hosted
	// Extension is the part of a platform that keeps its state across restarts; nil keeps none.
	Extension *Extension
}

// Extension are the functions of a platform that does more than the stubs: the sandbox. All are required. They run
// under the lock.
type Extension struct {
	// Match reports whether a wanted key is that of a kind's transaction; it replaces the exact comparison.
	Match func(kind, key, wanted string) bool
	// Begin is called for a valid call before its mode is selected. It returns whether its key was never applied.
	Begin func(c *Call) (isNew bool)
	// Draw draws the mode of a call without a script or a mode of its digits, and a delay of its response.
	Draw func(c *Call) (mode string, delay time.Duration)
	// Record is called with each response to a call that Begin has seen. Changed is called after each further change.
	Record  func(c *Call, r Response)
	Changed func(t *Transaction)
}

// source is the clock, the timers and the randomness of a platform.
type source struct {
	config Config
	mu     sync.Mutex // guards the platform
	ctx    context.Context
	cancel context.CancelFunc
	timers sync.WaitGroup // functions that timers have started
}

// Now is the clock in UTC, with the precision of milliseconds.
func (s *source) Now() time.Time { return s.config.Now().UTC().Truncate(time.Millisecond) }

// Scaled divides a delay by the speed.
func (s *source) Scaled(d time.Duration) time.Duration {
	return max(time.Duration(float64(d)/s.config.Speed), minDelay)
}

// After runs f under the lock after d, which Speed divides.
func (s *source) After(d time.Duration, f func()) { s.AfterUnscaled(s.Scaled(d), f) }

// AfterUnscaled runs f under the lock after d, unless the platform is closed by then.
func (s *source) AfterUnscaled(d time.Duration, f func()) {
	s.run(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
	})
}

// run runs f without the lock after d, unless the platform is closed by then.
func (s *source) run(d time.Duration, f func()) {
	s.config.After(max(d, 0), func() {
		s.mu.Lock()
		isClosed := s.ctx.Err() != nil
		if !isClosed {
			s.timers.Add(1)
		}
		s.mu.Unlock()
		if !isClosed {
			defer s.timers.Done()
			f()
		}
	})
}

// Close ends the work in progress and every wait. It reports whether the platform was open.
func (s *source) Close() bool {
	s.mu.Lock()
	wasOpen := s.ctx.Err() == nil
	s.cancel()
	s.mu.Unlock()
	s.timers.Wait()
	return wasOpen
}

// Locked runs f under the lock.
func (s *source) Locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Closed reports whether Close was called.
func (s *source) Closed() bool { return s.ctx.Err() != nil }

// NewBytes returns n random bytes.
func (s *source) NewBytes(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.config.Rand, b); err != nil {
		panic("kit: the source of randomness failed: " + err.Error())
	}
	return b
}

// NewID returns 2n random hexadecimal digits.
func (s *source) NewID(n int) string { return hex.EncodeToString(s.NewBytes(n)) }

// NewDigits returns n random decimal digits, the first of which is not 0.
func (s *source) NewDigits(n int) string {
	digits := []byte(s.NewID((n + 1) / 2))[:n]
	for i, d := range digits {
		digits[i] = '0' + (d&0xf)%10
	}
	digits[0] = max(digits[0], '1')
	return string(digits)
}

// NewUUID returns a random UUID (RFC 9562, version 4).
func (s *source) NewUUID() string {
	b := s.NewBytes(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Platform is the state of one operator's stub. It is safe for concurrent use and in memory only.
type Platform struct {
	*source `unhashed:"the time and the settings are not state"`
	*steering
	index // the transactions
	tokens
	sender   `unhashed:"the transactions have the callbacks"`
	mux      *http.ServeMux `unhashed:"never changes"`
	attempts map[[2]string]int
}

// New makes a platform.
func New(config Config, spec Spec) *Platform {
	if spec.TokenLife > 0 {
		spec.Quirks = slices.Concat(spec.Quirks, []string{"token_60s", "token_3s", "expires_in_text"})
	}
	s := &source{config: config.WithDefaults()}
	steers := &steering{source: s, spec: spec, quirks: map[string]bool{}}
	p := &Platform{
		source: s, steering: steers, index: index{steering: steers, byKey: map[[2]string]*Transaction{}},
		tokens: tokens{steers, map[string]token{}},
		sender: sender{source: s, log: &callLog{source: s, operator: spec.Operator}},
		mux:    http.NewServeMux(), attempts: map[[2]string]int{},
	}
	if spec.Extension != nil {
		p.changed = spec.Extension.Changed
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if spec.Hosted != nil {
		p.spec.Quirks = append([]string{spec.Hosted.Short}, spec.Quirks...)
		p.spec.Operations = slices.Concat(spec.Operations, p.pageOperations())
	}
	if spec.Extension == nil {
		p.spec.Operations = slices.Concat(p.spec.Operations, p.controlOperations())
	}
	for _, o := range p.spec.Operations {
		p.mux.HandleFunc(o.Pattern, func(w http.ResponseWriter, r *http.Request) {
			s := w.(*served)
			s.Response = p.handle(o, &Call{Request: r, Body: s.body})
			s.isMade = true
		})
	}
	return p
}
