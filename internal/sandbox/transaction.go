package sandbox

import "time"

// The kinds of transactions, which are the kinds of effects too.
const (
	kindCharge  = "charge"
	kindPayment = "payment"
	kindSMS     = "sms"
	kindLookup  = "getstatus" // no transaction: what scripts call a getStatus of a payment
)

// States of a transaction. A payment's last states are its statuses.
const (
	absent   = "absent"   // calls came, nothing was ever applied
	received = "received" // will be applied when the slow answer's time has passed
	charged  = "charged"  // a charge that was applied
	accepted = "accepted" // an SMS that was taken
	refused  = "refused"  // refused for good
	// pending, successful, failed, cancelled: a payment.
)

// transaction is all that the operator knows under a kind and a key. It never holds an otp_code or a gw-token, nor the
// alias of a charge.
type transaction struct {
	Kind        string    `json:"kind"`
	Key         string    `json:"key"`
	State       string    `json:"state"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Digits      string    `json:"digits,omitempty"`
	CreatedAt   time.Time `json:"created_at,omitzero"`
	FinalAt     time.Time `json:"final_at,omitzero"`

	// Odd: the first answer was spoilt or slow, so a payment counts as applied before the purchaser confirms.
	Odd bool `json:"odd,omitempty"`
	// Refusal and Early are what the first call's manner and unkindness decided on top of the digits.
	Refusal string `json:"refusal,omitempty"`
	Early   bool   `json:"early,omitempty"`

	OperatorID  string   `json:"operator_id,omitempty"` // serverReferenceCode, Transaction-id or the SMS request id
	Amount      string   `json:"amount,omitempty"`
	Currency    string   `json:"currency,omitempty"`
	CallbackURL string   `json:"callback_url,omitempty"`
	Answer      answer   `json:"answer"` // charge, SMS, and refused payments
	Payment     *order   `json:"payment,omitempty"`
	Message     *message `json:"message,omitempty"`

	ApplyAt  time.Time `json:"apply_at,omitzero"`  // while received
	SettleAt time.Time `json:"settle_at,omitzero"` // when a pending payment becomes what its digits say

	Calls     []call      `json:"calls,omitempty"` // the latest, oldest first
	CallCount int         `json:"call_count"`
	Lookups   int         `json:"lookups,omitempty"` // getStatus calls
	Callbacks []*callback `json:"callbacks,omitempty"`
	Effects   []Effect    `json:"effects,omitempty"`

	changed chan struct{} // closed and renewed when the state changes
	timer   bool          // a timer for the next callback runs
	busy    bool          // a callback is being posted
	held    bool          // callbacks wait for an early sender
	turn    turn          // of its calls, in the unkindness
	luck    *luck         // of its callbacks
}

// order is what a payment has besides.
type order struct {
	Operator    string `json:"operator"` // mno-name in lower case
	CountryText string `json:"country"`
	Channel     string `json:"channel"`
	Lang        string `json:"lang"`
	Reference   string `json:"reference"`
	State       string `json:"state"`
	MSISDN      string `json:"msisdn,omitempty"` // user_msisdn of the request
	Payer       string `json:"payer,omitempty"`  // the number typed on the page
	ReturnURL   string `json:"return_url"`
	CancelURL   string `json:"cancel_url"`
	PayToken    string `json:"pay_token,omitempty"`
	NotifToken  string `json:"notif_token,omitempty"`
	Why         string `json:"why,omitempty"`

	// Confirmed: a good PIN was given on the page. Wrong counts wrong PINs since LockedAt, when the fifth one came:
	// after that only a PIN issued later is taken.
	Confirmed bool      `json:"confirmed,omitempty"`
	Wrong     int       `json:"wrong,omitempty"`
	LockedAt  time.Time `json:"locked_at,omitzero"`
}

// message is what an SMS has besides.
type message struct {
	Sender       string `json:"sender"`
	Address      string `json:"address"`
	CallbackData string `json:"callback_data,omitempty"`
}

// Effect is one thing that really happened: money moved once, or a message was sent once.
type Effect struct {
	// Kind is charge, payment or sms.
	Kind string `json:"kind"`
	// Key is the key as the operator knows it: <Name>.<clientCorrelator>, <Name>~<referenceCode>, <Name>!<hash> or an order_id.
	Key string `json:"key"`
	// Amount and Currency are as they were sent; "" for an SMS.
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	// At is RFC 3339 in UTC.
	At time.Time `json:"at"`
	// CallbackURL is where the operator was asked to tell; "" and left out where no address was given.
	CallbackURL string `json:"callback_url,omitempty"`
}

// call is one call as it was answered.
type call struct {
	At     time.Time `json:"at"`
	Answer string    `json:"answer"` // HTTP status, or "cut"
}

// maxCalls bounds the calls and the attempts of a callback that are kept in the log of one transaction.
const maxCalls = 100

func (t *transaction) noteCall(at time.Time, a answer) {
	t.CallCount++
	t.Calls = append(t.Calls, call{At: at, Answer: a.word()})
	if len(t.Calls) > maxCalls {
		t.Calls = t.Calls[len(t.Calls)-maxCalls:]
	}
}

// final is true for a payment whose status can only be contradicted.
func (t *transaction) final() bool {
	switch t.State {
	case successful, failed, cancelled, refused:
		return true
	}
	return false
}

// happened records the effect, once.
func (t *transaction) happened(at time.Time) {
	if len(t.Effects) > 0 {
		return
	}
	t.Effects = append(t.Effects, Effect{Kind: t.Kind, Key: t.Key, Amount: t.Amount, Currency: t.Currency, At: at, CallbackURL: t.CallbackURL})
}

// wake tells everyone who waits that the state changed.
func (t *transaction) wake() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// wait returns a channel that is closed at the next change.
func (t *transaction) wait() <-chan struct{} {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// behaviour is what the paying party's digits decide, with what was decided at the first call.
func (t *transaction) behaviour() behaviour {
	b := behaviourOf(t.Kind, t.Digits)
	b.Early = b.Early || t.Early
	if t.Refusal != "" {
		b.Refusal = t.Refusal
	}
	return b
}

// book is every transaction, found by its kind and key, by the merchant's own form of the key, or by its page.
type book struct {
	all    []*transaction
	byKey  map[[2]string]*transaction
	byForm map[string][]*transaction
	hashed []*transaction
	byPage map[string]*transaction
}

func newBook() book {
	return book{byKey: map[[2]string]*transaction{}, byForm: map[string][]*transaction{}, byPage: map[string]*transaction{}}
}

// find returns the transaction of a kind and a key, a new absent one if there is none.
func (b *book) find(kind, key string) *transaction {
	t := b.byKey[[2]string{kind, key}]
	if t == nil {
		t = &transaction{Kind: kind, Key: key, State: absent}
		b.add(t)
	}
	return t
}

func (b *book) add(t *transaction) {
	b.all = append(b.all, t)
	b.byKey[[2]string{t.Kind, t.Key}] = t
	for _, form := range keyForms(t.Kind, t.Key) {
		b.byForm[form] = append(b.byForm[form], t)
	}
	if hashedKey(t.Kind, t.Key) {
		b.hashed = append(b.hashed, t)
	}
	b.indexPage(t)
}

func (b *book) indexPage(t *transaction) {
	if t.Payment != nil && t.Payment.PayToken != "" {
		b.byPage[t.Payment.PayToken] = t
	}
}

// look finds what stands under a key in either form, in the order of arrival; all of it for "".
func (b *book) look(key string) []*transaction {
	if key == "" {
		return b.all
	}
	found := append([]*transaction(nil), b.byForm[key]...)
	for _, t := range b.hashed {
		if hashMatches(t.Key, key) {
			found = append(found, t)
		}
	}
	return found
}
