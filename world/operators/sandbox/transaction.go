package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mobilegateway/world/operators/kit"
)

// The kinds of transactions, which are also the kinds of effects and the names of the operations.
const (
	kindCharge  = "charge"
	kindPayment = kit.KindPayment
	kindSMS     = kit.KindSMS
	kindLookup  = "getstatus" // only in scripts: a getStatus of a payment
)

// ownOperator is the sandbox's name in its effects and among the operators.
const ownOperator = "sandbox"

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
	expired    = "expired" // only a result that was drawn
)

// transaction is the operator's state under a kind and a key. It never contains an otp_code, a gw-token, or the alias
// of a charge. The zero value means that there is none.
type transaction struct {
	*kit.Transaction
	*Details
}

// Details is the part of a transaction that only the sandbox has. It is exported for its JSON form, the journal's.
type Details struct {
	Fingerprint string `json:"fingerprint,omitempty"`
	// FaultyFirstResponse: the first response was faulty or slow. Such a payment is applied before the payer confirms.
	FaultyFirstResponse bool `json:"odd,omitempty"`
	// InjectedFirst: the fault injection sends the callbacks before the response, an SMS's receipts in reverse order.
	InjectedFirst bool            `json:"early,omitempty"`
	Response      keptResponse    `json:"answer" unhashed:"made from the request and a random name"`
	Payment       *paymentDetails `json:"payment,omitempty"`
	Message       *smsDetails     `json:"message,omitempty"`

	ApplyAt    time.Time `json:"apply_at,omitzero"`  // in the state received
	FinalizeAt time.Time `json:"settle_at,omitzero"` // of a payment that needs no more confirmation

	Calls     []loggedCall `json:"calls,omitempty" unhashed:"only shown"` // the latest maxLoggedCalls, oldest first
	CallCount int          `json:"call_count" unhashed:"only shown"`
	Lookups   int          `json:"lookups,omitempty" unhashed:"only shown"` // getStatus calls

	faultSequence  faultSequence
	callbackFaults *callbackFaults
}

// keptResponse is a response that is kept for repeats.
type keptResponse struct {
	Status   int             `json:"status"`
	Location string          `json:"location,omitempty"`
	Body     json.RawMessage `json:"body,omitempty"`
}

func keep(r kit.Response) keptResponse { return keptResponse{r.Status, r.Header["Location"], r.Body} }

func (a keptResponse) response() kit.Response {
	return withHeader(jsonResponse(a.Status, a.Body), "Location", a.Location)
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
	PayToken          string `json:"pay_token,omitempty" unhashed:"a random name"`
	NotifToken        string `json:"notif_token,omitempty" unhashed:"a random name"`
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
type Effect = kit.Effect

// loggedCall is one call with its response.
type loggedCall struct {
	At       time.Time `json:"at"`
	Response string    `json:"answer"` // HTTP status, or "cut"
}

const maxLoggedCalls = 100 // of one transaction

// newTransaction makes an absent transaction.
func newTransaction(kind, key string) transaction {
	own := &Details{}
	return transaction{&kit.Transaction{Kind: kind, Keys: kit.Keys{Key: key}, Status: absent, Own: own}, own}
}

// of returns a transaction of the kit with its details.
func of(t *kit.Transaction) transaction { return transaction{t, t.Own.(*Details)} }

// find returns the transaction of a kind and an operator's key, or false.
func (s *Sandbox) find(kind, key string) (transaction, bool) {
	if t := s.Lookup(kind, key); t != nil {
		return of(t), true
	}
	return transaction{}, false
}

// findPage returns the payment with a pay_token, or false.
func (s *pages) findPage(payToken string) (transaction, bool) {
	for _, t := range s.Transactions() {
		if o := of(t); o.Payment != nil && o.Payment.PayToken == payToken {
			return o, true
		}
	}
	return transaction{}, false
}

func (t transaction) isReceived() bool { return t.Details != nil && t.Status == received }

// statusFinal reports whether a payment has its final status, which only a callback may contradict.
func (t transaction) statusFinal() bool {
	return slices.Contains([]string{successful, failed, cancelled, expired, refused}, t.Status)
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
	if kind == kindPayment || kind == kindLookup || !ok || sign != '!' {
		return kind != kindPayment && kind != kindLookup && ok && ownKey == wanted
	}
	texts := []string{wanted}
	if prefix, _, rest, ok := splitKey(wanted); ok && prefix == name && rest != "" {
		texts = append(texts, rest) // a full form that was too long to be sent unchanged
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return hashedKey(name, "."+text) == key || hashedKey(name, "~"+text) == key
	})
}

// splitKey splits an operator's key at its first sign; false if no merchant's name is in front of it.
func splitKey(key string) (name string, sign byte, ownKey string, ok bool) {
	const lettersAndDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	i := strings.IndexAny(key, ".~!")
	if i <= 0 || strings.Trim(key[:i], lettersAndDigits) != "" {
		return "", 0, "", false
	}
	return key[:i], key[i], key[i+1:], true
}

// hashedKey returns the operator's key of a merchant's key, with its sign, that is too long to be sent unchanged; ""
// for any other.
func hashedKey(name, signAndKey string) string {
	const longest, digits = 64, 40
	key := name + signAndKey
	if utf8.RuneCountInString(key) <= longest {
		return ""
	}
	h := sha256.New()
	for _, part := range []string{"mobilegateway/upstream", key} { // each after its length
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return name + "!" + hex.EncodeToString(h.Sum(nil))[:digits]
}
