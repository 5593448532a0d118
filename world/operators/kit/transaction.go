package kit

import (
	"cmp"
	"slices"
	"time"
)

// KindPayment and KindSMS are the kinds of transactions and effects of the stubs.
const (
	KindPayment = "payment"
	KindSMS     = "sms"
)

// Transaction is one payment or message at the platform.
type Transaction struct {
	Kind string `json:"kind"` // KindPayment by default
	Keys
	Amount      string    `json:"amount,omitempty"`
	Currency    string    `json:"currency,omitempty"`
	CallbackURL string    `json:"callback_url,omitempty"`
	Outcome     Outcome   `json:"outcome"`
	Status      string    `json:"state"` // the stub's own word
	Result      Result    `json:"-"`     // Undecided until Decide
	Reference   string    `json:"operator_id,omitempty" unhashed:"a random name"`
	CreatedAt   time.Time `json:"created_at,omitzero"`
	EndsAt      time.Time `json:"final_at,omitzero"`
	Sent        Fields    `json:"-"` // the fields of the request
	// Details are further fields of the protocol, and Own is the state of a platform that needs more.
	Details map[string]string `json:"-"`
	Own     any               `json:"-"`
	// PageID is the id of the page. With PageQuery the page is found under that query only.
	PageID    string `json:"pay_token,omitempty" unhashed:"a random name"`
	PageQuery string `json:"-"`
	Cancelled bool   `json:"-"` // on the page
	Queue
	Effects []Effect `json:"effects,omitempty"`

	others []*Queue // of callbacks that wait for none of Queue
}

// Effect is money that moved or an SMS that was sent.
type Effect struct {
	// Kind is charge, payment or sms.
	Kind string `json:"kind"`
	// Key is the upstream key or the order id.
	Key string `json:"key"`
	// Amount and Currency are those of the request, empty for an SMS.
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	// At is RFC 3339 in UTC.
	At time.Time `json:"at"`
	// CallbackURL is the callback address of the request, if it has one.
	CallbackURL string `json:"callback_url,omitempty"`
	Operator    string `json:"operator,omitempty"`

	number int `unhashed:"only the order of the list"`
}

// index contains every transaction in the order of arrival, and the first one of each kind and key.
type index struct {
	*steering `unhashed:"Platform has it"`
	all       []*Transaction
	byKey     map[[2]string]*Transaction `unhashed:"all has them"`
	effects   int                        `unhashed:"only the order of the list"`
}

// Insert stores a transaction. An earlier one under its kind and key stays the one that is found, unless replace is
// set.
func (x *index) Insert(t *Transaction, replace bool) {
	t.Kind = cmp.Or(t.Kind, KindPayment)
	x.all = append(x.all, t)
	if id := [2]string{t.Kind, t.Key}; replace || x.byKey[id] == nil {
		x.byKey[id] = t
	}
}

// Transactions returns all transactions in the order of arrival. Do not change the slice.
func (x *index) Transactions() []*Transaction { return x.all }

// Lookup returns the transaction of a kind and an upstream key, or nil.
func (x *index) Lookup(kind, key string) *Transaction { return x.byKey[[2]string{kind, key}] }

// Add stores a new transaction of a call. It sets the keys, what was sent, the time, and the outcome or the end of the
// page. The payer of a page is unknown. Several transactions may have one key.
func (p *Platform) Add(c *Call, t *Transaction) *Transaction {
	t.Keys, t.Sent, t.CreatedAt = c.Keys, c.Fields, p.Now()
	if t.Details == nil {
		t.Details = map[string]string{}
	}
	if p.spec.Hosted == nil {
		t.Outcome = p.NewOutcome(cmp.Or(t.Kind, KindPayment), c.Keys)
	} else {
		t.MSISDN, t.EndsAt = "", p.pageEnd()
	}
	p.Insert(t, false)
	return t
}

// Find returns the first payment with this upstream key, or nil.
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

// All returns the transactions that fit, in the order of arrival.
func (p *Platform) All(fits func(*Transaction) bool) []*Transaction {
	var found []*Transaction
	for _, t := range p.all {
		if p.expire(t); fits(t) {
			found = append(found, t)
		}
	}
	return found
}

// AddEffect records that money moved or that an SMS was sent.
func (x *index) AddEffect(t *Transaction) {
	x.effects++
	e := Effect{
		Kind: t.Kind, Key: t.Key, Amount: t.Amount, Currency: t.Currency, At: x.Now(), CallbackURL: t.CallbackURL,
		Operator: x.spec.Operator, number: x.effects,
	}
	t.Effects = append(t.Effects, e)
	x.config.Applied(e)
}

// Effects returns the effects of the transactions under a key in the order in which they happened; all for "".
func (x *index) Effects(key string) []Effect {
	effects := []Effect{}
	for _, t := range x.Matching(key) {
		effects = append(effects, t.Effects...)
	}
	slices.SortFunc(effects, func(a, b Effect) int { return cmp.Compare(a.number, b.number) })
	return effects
}

// Matching returns the transactions under a key in the order of arrival; all for "".
func (x *index) Matching(key string) []*Transaction {
	if key == "" {
		return x.all
	}
	var found []*Transaction
	for _, t := range x.all {
		if x.match(t.Kind, t.Keys, key) {
			found = append(found, t)
		}
	}
	return found
}
