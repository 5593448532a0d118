package operatorstub

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
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
	// Faults are the operator's own forms of faults, by name. They replace the kit's of the same name.
	Faults map[string]Response
	// Quirks are the names of the switches.
	Quirks []string
	// Numbers are the operator's own test numbers, as the protocol writes them.
	Numbers map[string]Outcome
	// TokenLife is the life of a token; 0 for an operator without tokens.
	TokenLife time.Duration
}

// Transaction is one payment or message at the platform.
type Transaction struct {
	Operation, Key    string // Key is the upstream key
	OrderID           string // our order id, if the protocol carries it
	Amount, Currency  string
	MSISDN            string
	CallbackURL       string
	Outcome           Outcome
	Status            string // the stub's own word
	Result            Result // Undecided until Decide
	Reference         string // the operator's own reference
	CreatedAt, EndsAt time.Time
	Details           map[string]string // further fields of the protocol
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

	orderID string
}

// Platform is the state of one operator's stub. It is safe for concurrent use and in memory only.
type Platform struct {
	config Config
	spec   Spec
	faults map[string]Response

	mu           sync.Mutex // guards all fields below
	transactions []*Transaction
	effects      []Effect
	calls        []callRecord
	attempts     map[[2]string]int // by operation and key
	scripts      []*script
	quirks       map[string]bool
	tokens       map[string]token // by the token
}

// New makes a platform.
func New(config Config, spec Spec) *Platform {
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
	if spec.TokenLife > 0 {
		spec.Quirks = slices.Concat(spec.Quirks, []string{"token_60s", "token_3s", "expires_in_text"})
	}
	return &Platform{
		config: config, spec: spec, faults: faultsOf(spec), attempts: map[[2]string]int{},
		quirks: map[string]bool{}, tokens: map[string]token{},
	}
}

// Now is the clock in UTC, with the precision of milliseconds.
func (p *Platform) Now() time.Time { return p.config.Now().UTC().Truncate(time.Millisecond) }

// After runs f under the lock after d, which Speed divides.
func (p *Platform) After(d time.Duration, f func()) {
	p.config.After(max(time.Duration(float64(d)/p.config.Speed), minDelay), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		f()
	})
}

// NewID returns 2n random hexadecimal digits.
func (p *Platform) NewID(n int) string {
	b := make([]byte, n)
	if _, err := io.ReadFull(p.config.Rand, b); err != nil {
		panic("operatorstub: the source of randomness failed: " + err.Error())
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
		panic("operatorstub: no quirk " + name)
	}
	return p.quirks[name]
}

// Add stores a new transaction. It sets CreatedAt. Several transactions may have one key.
func (p *Platform) Add(t *Transaction) *Transaction {
	t.CreatedAt = p.Now()
	p.transactions = append(p.transactions, t)
	return t
}

// Find returns the first transaction of an operation with this upstream key, or nil.
func (p *Platform) Find(operation, key string) *Transaction {
	return p.First(func(t *Transaction) bool { return t.Operation == operation && t.Key == key })
}

// First returns the first transaction that fits, or nil.
func (p *Platform) First(fits func(*Transaction) bool) *Transaction {
	if i := slices.IndexFunc(p.transactions, fits); i >= 0 {
		return p.transactions[i]
	}
	return nil
}

// All returns the transactions that fit, in the order of Add.
func (p *Platform) All(fits func(*Transaction) bool) []*Transaction {
	var found []*Transaction
	for _, t := range p.transactions {
		if fits(t) {
			found = append(found, t)
		}
	}
	return found
}

// AddEffect records that money moved or that an SMS was sent. Kind is "payment" or "sms".
func (p *Platform) AddEffect(t *Transaction, kind string) {
	p.effects = append(p.effects, Effect{
		Kind: kind, Key: t.Key, Amount: t.Amount, Currency: t.Currency, At: p.Now(), CallbackURL: t.CallbackURL,
		Operator: p.spec.Operator, orderID: t.OrderID,
	})
}

// Decide ends a transaction with its outcome's result, once, and records the effect of a success. It returns the
// callbacks in their order, made by callback, for Send or Response.First.
func (p *Platform) Decide(t *Transaction, callback func(Result) Callback) []Callback {
	if t.Result != Undecided || t.Outcome.Result == Undecided {
		return nil
	}
	t.Result, t.EndsAt = t.Outcome.Result, p.Now()
	if t.Result == Paid {
		p.AddEffect(t, "payment")
	}
	var callbacks []Callback
	for _, r := range t.Outcome.callbackResults() {
		callbacks = append(callbacks, callback(r))
	}
	return callbacks
}

type token struct {
	owner   string
	expires time.Time
}

// IssueToken makes a token for owner, which is the account that it belongs to. The second result is the value of
// expires_in: a number of seconds, or their text with the quirk expires_in_text.
func (p *Platform) IssueToken(owner string) (string, any) {
	life := p.spec.TokenLife
	switch {
	case p.quirks["token_3s"]:
		life = 3 * time.Second
	case p.quirks["token_60s"]:
		life = time.Minute
	}
	text := p.NewID(24)
	p.tokens[text] = token{owner, p.Now().Add(life)}
	return text, p.expiresIn(life)
}

// CurrentToken returns the valid token of owner with its remaining seconds, rounded down. Without one it issues one.
func (p *Platform) CurrentToken(owner string) (string, any) {
	for text, t := range p.tokens {
		if left := t.expires.Sub(p.Now()); t.owner == owner && left > 0 {
			return text, p.expiresIn(left)
		}
	}
	return p.IssueToken(owner)
}

func (p *Platform) expiresIn(life time.Duration) any {
	if p.quirks["expires_in_text"] {
		return fmt.Sprint(int(life.Seconds()))
	}
	return int(life.Seconds())
}

// ValidToken reports whether a request shows an unexpired bearer token of owner.
func (p *Platform) ValidToken(r *http.Request, owner string) bool {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	t, known := p.tokens[text]
	return ok && known && t.owner == owner && p.Now().Before(t.expires)
}

// IsUUIDv4 reports whether s is a UUID of version 4 in its usual form.
func IsUUIDv4(s string) bool {
	if len(s) != 36 || s[14] != '4' || !strings.ContainsRune("89abAB", rune(s[19])) {
		return false
	}
	for i, c := range s {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return true
}

// IsAmount reports whether s is a positive decimal number without a sign.
func IsAmount(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	digits := whole + fraction
	return whole != "" && point == (fraction != "") && strings.Trim(digits, "0123456789") == "" &&
		strings.Trim(digits, "0") != ""
}
