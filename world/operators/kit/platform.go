package kit

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	slowResponseDelay    = 60 * time.Second // mode slow; never scaled
	callbackTimeout      = 10 * time.Second // one delivery attempt; never scaled
	earlyCallbackTimeout = 4 * time.Second  // the wait of a response for its early callback; never scaled
	minDelay             = 10 * time.Millisecond
)

// Config is the settings of a platform. All have defaults.
type Config struct {
	// Now is the clock, and After starts f in a goroutine after d. Both are the real ones by default.
	Now   func() time.Time
	After func(d time.Duration, f func())
	// Rand is the source of identifiers and tokens; crypto/rand by default.
	Rand io.Reader
	// Client sends callbacks. The default follows no redirect and waits for 10 seconds.
	Client *http.Client
	// Logf writes one line for each call and callback, without numbers, tokens or bodies; nothing by default.
	Logf func(format string, args ...any)
	// Speed divides every delay of Platform.After; 1 by default. Timeouts and the lives of tokens never scale.
	Speed float64
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
	// Faults are further forms of faults, by name. They replace the others of the same name.
	Faults map[string]Response
	// Quirks are the names of the switches.
	Quirks []string
	// Numbers are the operator's own test numbers, as the protocol writes them.
	Numbers map[string]Outcome
	// TokenLife is the life of a token; 0 for an operator without tokens.
	TokenLife time.Duration
	// Callback makes the callback that reports a result. Without a URL it is not sent.
	Callback func(t *Transaction, r Result) Callback
	// End is called when a transaction is due for its end, also if its outcome is Undecided; nil does nothing.
	End func(t *Transaction)
	// Hosted describes the pages of payments; nil for an operator without them.
	Hosted *Hosted
}

// Transaction is one payment or message at the platform.
type Transaction struct {
	Keys
	Amount, Currency  string
	CallbackURL       string
	Outcome           Outcome
	Status            string // the stub's own word
	Result            Result // Undecided until Decide
	Reference         string // the operator's own reference
	CreatedAt, EndsAt time.Time
	Sent              Fields            // the fields of the request
	Details           map[string]string // further fields of the protocol
	// PageID is the id of the page. With PageQuery the page is found under that query only.
	PageID, PageQuery string
	Cancelled         bool // on the page
}

// Effect is money that moved or an SMS that was sent. Kind is "payment" or "sms".
type Effect struct {
	Kind        string    `json:"kind"`
	Key         string    `json:"key"`
	Amount      string    `json:"amount"`
	Currency    string    `json:"currency"`
	At          time.Time `json:"at"`
	CallbackURL string    `json:"callback_url"`
	Operator    string    `json:"operator"`

	keys Keys
}

// Platform is the state of one operator's stub. It is safe for concurrent use and in memory only.
type Platform struct {
	config Config
	spec   Spec

	mu           sync.Mutex // guards all fields below
	transactions []*Transaction
	effects      []Effect
	calls        []callRecord
	attempts     map[[2]string]int // by operation and key
	scripts      []*script
	quirks       map[string]bool
	tokens       map[string]token // by the token
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
	if config.Logf == nil {
		config.Logf = func(string, ...any) {}
	}
	return config
}

// New makes a platform.
func New(config Config, spec Spec) *Platform {
	if spec.TokenLife > 0 {
		spec.Quirks = slices.Concat(spec.Quirks, []string{"token_60s", "token_3s", "expires_in_text"})
	}
	p := &Platform{config: config.WithDefaults(), spec: spec, attempts: map[[2]string]int{}, quirks: map[string]bool{},
		tokens: map[string]token{}}
	if spec.Hosted != nil {
		p.spec.Quirks = append([]string{spec.Hosted.Short}, spec.Quirks...)
		p.spec.Operations = slices.Concat(spec.Operations, p.pageOperations())
	}
	return p
}

// Now is the clock in UTC, with the precision of milliseconds.
func (p *Platform) Now() time.Time { return p.config.Now().UTC().Truncate(time.Millisecond) }

// After runs f under the lock after d, which Speed divides.
func (p *Platform) After(d time.Duration, f func()) {
	p.config.After(p.scaled(d), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		f()
	})
}

func (p *Platform) scaled(d time.Duration) time.Duration {
	return max(time.Duration(float64(d)/p.config.Speed), minDelay)
}

// NewID returns 2n random hexadecimal digits.
func (p *Platform) NewID(n int) string {
	b := make([]byte, n)
	if _, err := io.ReadFull(p.config.Rand, b); err != nil {
		panic("kit: the source of randomness failed: " + err.Error())
	}
	return hex.EncodeToString(b)
}

// NewDigits returns n random decimal digits, the first of which is not 0.
func (p *Platform) NewDigits(n int) string {
	digits := []byte(p.NewID((n + 1) / 2))[:n]
	for i, d := range digits {
		digits[i] = '0' + (d&0xf)%10
	}
	digits[0] = max(digits[0], '1')
	return string(digits)
}

// Quirk reports whether a switch is on. It panics for a name that the Spec lacks.
func (p *Platform) Quirk(name string) bool {
	if !slices.Contains(p.spec.Quirks, name) {
		panic("kit: no quirk " + name)
	}
	return p.quirks[name]
}

// Add stores a new transaction of a call. It sets the keys, what was sent, the time, and the outcome or the end of the
// page. The payer of a page is unknown. Several transactions may have one key.
func (p *Platform) Add(c *Call, t *Transaction) *Transaction {
	t.Keys, t.Sent, t.CreatedAt = c.Keys, c.Fields, p.Now()
	if t.Details == nil {
		t.Details = map[string]string{}
	}
	if p.spec.Hosted == nil {
		t.Outcome = p.OutcomeFor(c.MSISDN)
	} else {
		t.MSISDN, t.EndsAt = "", p.pageEnd()
	}
	p.transactions = append(p.transactions, t)
	return t
}

// Find returns the first transaction with this upstream key, or nil.
func (p *Platform) Find(key string) *Transaction {
	return p.First(func(t *Transaction) bool { return t.Key == key })
}

// First returns the first transaction that fits, or nil.
func (p *Platform) First(fits func(*Transaction) bool) *Transaction {
	if found := p.All(fits); len(found) > 0 {
		return found[0]
	}
	return nil
}

// All returns the transactions that fit, in the order of Add.
func (p *Platform) All(fits func(*Transaction) bool) []*Transaction {
	var found []*Transaction
	for _, t := range p.transactions {
		if p.expire(t); fits(t) {
			found = append(found, t)
		}
	}
	return found
}

// AddEffect records that money moved or that an SMS was sent. Kind is "payment" or "sms".
func (p *Platform) AddEffect(t *Transaction, kind string) {
	p.effects = append(p.effects, Effect{
		Kind: kind, Key: t.Key, Amount: t.Amount, Currency: t.Currency, At: p.Now(), CallbackURL: t.CallbackURL,
		Operator: p.spec.Operator, keys: t.Keys,
	})
}
