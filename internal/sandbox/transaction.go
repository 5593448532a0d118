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
	Kind           string    `json:"kind"`
	Key            string    `json:"key"`
	State          string    `json:"state"`
	Fingerprint    string    `json:"fingerprint,omitempty"`
	LastFourDigits string    `json:"digits,omitempty"`
	CreatedAt      time.Time `json:"created_at,omitzero"`
	FinalAt        time.Time `json:"final_at,omitzero"`

	// FaultyFirstResponse: the first answer was spoilt or slow, so a payment counts as applied before the purchaser confirms.
	FaultyFirstResponse bool `json:"odd,omitempty"`
	// RefusalID and Early are what the first call's manner and unkindness decided on top of the digits.
	RefusalID      string `json:"refusal,omitempty"`
	CallbacksFirst bool   `json:"early,omitempty"`

	OperatorID  string          `json:"operator_id,omitempty"` // serverReferenceCode, Transaction-id or the SMS request id
	Amount      string          `json:"amount,omitempty"`
	Currency    string          `json:"currency,omitempty"`
	CallbackURL string          `json:"callback_url,omitempty"`
	Response    response        `json:"answer"` // charge, SMS, and refused payments
	Payment     *paymentDetails `json:"payment,omitempty"`
	Message     *smsDetails     `json:"message,omitempty"`

	ApplyAt    time.Time `json:"apply_at,omitzero"`  // while received
	FinalizeAt time.Time `json:"settle_at,omitzero"` // when a pending payment becomes what its digits say

	Calls     []loggedCall `json:"calls,omitempty"` // the latest, oldest first
	CallCount int          `json:"call_count"`
	Lookups   int          `json:"lookups,omitempty"` // getStatus calls
	Callbacks []*callback  `json:"callbacks,omitempty"`
	Effects   []Effect     `json:"effects,omitempty"`

	changed          chan struct{}   // closed and renewed when the state changes
	callbackTimerSet bool            // a timer for the next callback runs
	callbackInFlight bool            // a callback is being posted
	callbacksBlocked bool            // callbacks wait for an early sender
	faultSequence    faultSequence   // of its calls, in the unkindness
	callbackFaults   *callbackFaults // of its callbacks
}

// paymentDetails is what a payment has besides.
type paymentDetails struct {
	Operator          string `json:"operator"` // mno-name in lower case
	CountryCode       string `json:"country"`
	Channel           string `json:"channel"`
	Lang              string `json:"lang"`
	Reference         string `json:"reference"`
	State             string `json:"state"`
	RequestedMSISDN   string `json:"msisdn,omitempty"` // user_msisdn of the request
	TypedMSISDN       string `json:"payer,omitempty"`  // the number typed on the page
	ReturnURL         string `json:"return_url"`
	CancelURL         string `json:"cancel_url"`
	PayToken          string `json:"pay_token,omitempty"`
	NotifToken        string `json:"notif_token,omitempty"`
	StatusDescription string `json:"why,omitempty"`

	// Confirmed: a good PIN was given on the page. Wrong counts wrong PINs since LockedAt, when the fifth one came:
	// after that only a PIN issued later is taken.
	Confirmed bool      `json:"confirmed,omitempty"`
	WrongPINs int       `json:"wrong,omitempty"`
	LockedAt  time.Time `json:"locked_at,omitzero"`
}

// smsDetails is what an SMS has besides.
type smsDetails struct {
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

// loggedCall is one call as it was answered.
type loggedCall struct {
	At       time.Time `json:"at"`
	Response string    `json:"answer"` // HTTP status, or "cut"
}

// maxLoggedCalls bounds the calls and the attempts of a callback that are kept in the log of one transaction.
const maxLoggedCalls = 100

func (t *transaction) logCall(at time.Time, a response) {
	t.CallCount++
	t.Calls = append(t.Calls, loggedCall{At: at, Response: a.logText()})
	if len(t.Calls) > maxLoggedCalls {
		t.Calls = t.Calls[len(t.Calls)-maxLoggedCalls:]
	}
}

// statusFinal is true for a payment whose status can only be contradicted.
func (t *transaction) statusFinal() bool {
	switch t.State {
	case successful, failed, cancelled, refused:
		return true
	}
	return false
}

// recordEffect records the effect, once.
func (t *transaction) recordEffect(at time.Time) {
	if len(t.Effects) > 0 {
		return
	}
	t.Effects = append(t.Effects, Effect{Kind: t.Kind, Key: t.Key, Amount: t.Amount, Currency: t.Currency, At: at, CallbackURL: t.CallbackURL})
}

// notifyWaiters tells everyone who waits that the state changed.
func (t *transaction) notifyWaiters() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// nextChange returns a channel that is closed at the next change.
func (t *transaction) nextChange() <-chan struct{} {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// behaviour is what the paying party's digits decide, with what was decided at the first call.
func (t *transaction) behaviour() behaviour {
	b := behaviourFor(t.Kind, t.LastFourDigits)
	b.CallbacksFirst = b.CallbacksFirst || t.CallbacksFirst
	if t.RefusalID != "" {
		b.RefusalID = t.RefusalID
	}
	return b
}

// transactionIndex is every transaction, found by its kind and key, by the merchant's own form of the key, or by its page.
type transactionIndex struct {
	all        []*transaction
	byKey      map[[2]string]*transaction
	byKeyForm  map[string][]*transaction
	hashedKeys []*transaction
	byPayToken map[string]*transaction
}

func newTransactionIndex() transactionIndex {
	return transactionIndex{byKey: map[[2]string]*transaction{}, byKeyForm: map[string][]*transaction{}, byPayToken: map[string]*transaction{}}
}

// findOrCreate returns the transaction of a kind and a key, a new absent one if there is none.
func (b *transactionIndex) findOrCreate(kind, key string) *transaction {
	t := b.byKey[[2]string{kind, key}]
	if t == nil {
		t = &transaction{Kind: kind, Key: key, State: absent}
		b.add(t)
	}
	return t
}

func (b *transactionIndex) add(t *transaction) {
	b.all = append(b.all, t)
	b.byKey[[2]string{t.Kind, t.Key}] = t
	for _, form := range lookupForms(t.Kind, t.Key) {
		b.byKeyForm[form] = append(b.byKeyForm[form], t)
	}
	if isHashedKey(t.Kind, t.Key) {
		b.hashedKeys = append(b.hashedKeys, t)
	}
	b.indexPage(t)
}

func (b *transactionIndex) indexPage(t *transaction) {
	if t.Payment != nil && t.Payment.PayToken != "" {
		b.byPayToken[t.Payment.PayToken] = t
	}
}

// findByKey finds what stands under a key in either form, in the order of arrival; all of it for "".
func (b *transactionIndex) findByKey(key string) []*transaction {
	if key == "" {
		return b.all
	}
	found := append([]*transaction(nil), b.byKeyForm[key]...)
	for _, t := range b.hashedKeys {
		if hashMatches(t.Key, key) {
			found = append(found, t)
		}
	}
	return found
}
