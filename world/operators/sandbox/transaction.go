package sandbox

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
)

// The kinds of transactions, which are also the kinds of effects.
const (
	kindCharge  = "charge"
	kindPayment = "payment"
	kindSMS     = "sms"
	kindLookup  = "getstatus" // only in scripts: a getStatus of a payment
)

// States of a transaction. The last ones are a payment's, and they are its statuses on the wire.
const (
	absent   = "absent"   // calls came, and none was applied
	received = "received" // to be applied after the delay of a slow response
	charged  = "charged"  // an applied charge
	accepted = "accepted" // an accepted SMS
	refused  = "refused"  // refused permanently

	pending    = "pending"
	successful = "successful"
	failed     = "failed"
	cancelled  = "cancelled"
)

// transaction is the operator's state under a kind and a key. It never contains an otp_code, a gw-token, or the alias
// of a charge.
type transaction struct {
	Kind           string    `json:"kind"`
	Key            string    `json:"key"`
	State          string    `json:"state"`
	Fingerprint    string    `json:"fingerprint,omitempty"`
	LastFourDigits string    `json:"digits,omitempty"`
	CreatedAt      time.Time `json:"created_at,omitzero"`
	FinalAt        time.Time `json:"final_at,omitzero"`

	// FaultyFirstResponse: the first response was faulty or slow. Such a payment is applied before the payer confirms.
	FaultyFirstResponse bool `json:"odd,omitempty"`
	// RefusalID and CallbacksFirst come from the response mode and the fault injection, on top of the digits.
	RefusalID      string `json:"refusal,omitempty"`
	CallbacksFirst bool   `json:"early,omitempty"`

	OperatorID  string          `json:"operator_id,omitempty"` // serverReferenceCode, Transaction-id or SMS request id
	Amount      string          `json:"amount,omitempty"`
	Currency    string          `json:"currency,omitempty"`
	CallbackURL string          `json:"callback_url,omitempty"`
	Response    response        `json:"answer"` // of a charge, an SMS and a refused payment
	Payment     *paymentDetails `json:"payment,omitempty"`
	Message     *smsDetails     `json:"message,omitempty"`

	ApplyAt    time.Time `json:"apply_at,omitzero"`  // in the state received
	FinalizeAt time.Time `json:"settle_at,omitzero"` // of a pending payment that needs no more confirmation

	Calls     []loggedCall `json:"calls,omitempty"` // the latest maxLoggedCalls, oldest first
	CallCount int          `json:"call_count"`
	Lookups   int          `json:"lookups,omitempty"` // getStatus calls
	Callbacks []*callback  `json:"callbacks,omitempty"`
	Effects   []Effect     `json:"effects,omitempty"`

	changed          chan struct{} // closed at the next change of the state; nil: no call waits
	callbackTimerSet bool          // a timer for the next callback runs
	callbackInFlight bool          // a callback is being posted
	callbacksBlocked bool          // callbacks wait for sendBlockedCallbacks
	faultSequence    faultSequence
	callbackFaults   *callbackFaults
}

// paymentDetails is the part of a transaction that only payments have.
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

	// Confirmed: the page got a good PIN. The fifth wrong PIN sets LockedAt: then the page takes only a PIN that was
	// issued later. WrongPINs counts from there again.
	Confirmed bool      `json:"confirmed,omitempty"`
	WrongPINs int       `json:"wrong,omitempty"`
	LockedAt  time.Time `json:"locked_at,omitzero"`
}

// smsDetails is the part of a transaction that only SMS have.
type smsDetails struct {
	Address      string `json:"address"`
	CallbackData string `json:"callback_data,omitempty"`
}

// Effect is one movement of money, or one message that was sent.
type Effect struct {
	// Kind is charge, payment or sms.
	Kind string `json:"kind"`
	// Key is the operator's: <Name>.<clientCorrelator>, <Name>~<referenceCode>, <Name>!<hash> or an order_id.
	Key string `json:"key"`
	// Amount and Currency are those of the request, empty for an SMS.
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	// At is RFC 3339 in UTC.
	At time.Time `json:"at"`
	// CallbackURL is the callback address of the request, if it has one.
	CallbackURL string `json:"callback_url,omitempty"`
}

// loggedCall is one call with its response.
type loggedCall struct {
	At       time.Time `json:"at"`
	Response string    `json:"answer"` // HTTP status, or "cut"
}

const maxLoggedCalls = 100 // of one transaction

func (t *transaction) logCall(at time.Time, a response) {
	t.CallCount++
	t.Calls = append(t.Calls, loggedCall{At: at, Response: a.logText()})
	t.Calls = t.Calls[max(0, len(t.Calls)-maxLoggedCalls):]
}

// statusFinal reports whether a payment has its final status, which only a callback may contradict.
func (t *transaction) statusFinal() bool {
	return slices.Contains([]string{successful, failed, cancelled, refused}, t.State)
}

// recordEffect records the effect, once.
func (t *transaction) recordEffect(at time.Time) {
	if len(t.Effects) == 0 {
		t.Effects = []Effect{{t.Kind, t.Key, t.Amount, t.Currency, at, t.CallbackURL}}
	}
}

// notifyWaiters ends the wait of every call that has called nextChange.
func (t *transaction) notifyWaiters() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// nextChange returns a channel that the next notifyWaiters closes.
func (t *transaction) nextChange() <-chan struct{} {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// behaviour is the outcome of the payer's digits, with the decisions of the first call.
func (t *transaction) behaviour() behaviour {
	b := behaviourFor(t.Kind, t.LastFourDigits)
	b.CallbacksFirst = b.CallbacksFirst || t.CallbacksFirst
	b.RefusalID = cmp.Or(t.RefusalID, b.RefusalID)
	return b
}

// transactionIndex contains every transaction, in the order of arrival and by kind and key.
type transactionIndex struct {
	all   []*transaction
	byKey map[[2]string]*transaction
}

// find returns the transaction of a kind and an operator's key, or nil.
func (x *transactionIndex) find(kind, key string) *transaction { return x.byKey[[2]string{kind, key}] }

// findOrCreate returns the transaction of a kind and an operator's key, a new absent one if there is none.
func (x *transactionIndex) findOrCreate(kind, key string) *transaction {
	t := x.find(kind, key)
	if t == nil {
		t = &transaction{Kind: kind, Key: key, State: absent}
		x.all = append(x.all, t)
		x.byKey[[2]string{kind, key}] = t
	}
	return t
}

// findPage returns the payment with a pay_token, or nil.
func (x *transactionIndex) findPage(payToken string) *transaction {
	for _, t := range x.all {
		if t.Payment != nil && t.Payment.PayToken == payToken {
			return t
		}
	}
	return nil
}

// list returns the transactions under a key in either form, or all for "".
func (x *transactionIndex) list(key string) []*transaction {
	if key == "" {
		return x.all
	}
	var found []*transaction
	for _, t := range x.all {
		if matchesKey(t.Kind, t.Key, key) {
			found = append(found, t)
		}
	}
	return found
}

// matchesKey reports whether wanted means an operator's key: the key itself, or the merchant's own key in it.
//
// The operator's key of a charge or an SMS is the merchant's name, a sign and the merchant's key. The sign is "."
// before a clientCorrelator, "~" before a referenceCode, and "!" before a hash of either (decision "upstream-key"). An
// order_id is used unchanged, also for the payer's SMS.
func matchesKey(kind, key, wanted string) bool {
	if key == wanted {
		return true
	}
	name, sign, ownKey, ok := splitKey(key)
	if kind == kindPayment || !ok || sign != '!' {
		return kind != kindPayment && ok && ownKey == wanted
	}
	texts := []string{wanted}
	if prefix, _, rest, ok := splitKey(wanted); ok && prefix == name && rest != "" {
		texts = append(texts, rest) // a full form that was too long to be sent unchanged
	}
	for _, text := range texts {
		if ledger.UpstreamKey(name, text, "") == key || ledger.UpstreamKey(name, "", text) == key {
			return true
		}
	}
	return false
}

const lettersAndDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// splitKey splits an operator's key at its first sign; false if no merchant's name is in front of it.
func splitKey(key string) (name string, sign byte, ownKey string, ok bool) {
	i := strings.IndexAny(key, ".~!")
	if i <= 0 || strings.Trim(key[:i], lettersAndDigits) != "" {
		return "", 0, "", false
	}
	return key[:i], key[i], key[i+1:], true
}
