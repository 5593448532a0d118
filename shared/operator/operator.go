// Package operator defines the interface that an operator's driver implements, the table of operators with their
// capabilities, and the outcomes of a call.
//
// It decides nothing about transactions. Its invariant: an outcome is Succeeded, Refused or NotApplied only if that is
// certain. Everything else is Unknown, the zero value.
package operator

import (
	"context"
	"errors"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
)

// Outcome is the result of a call (decision "outcomes").
type Outcome int

// The outcomes. Unknown is the zero value on purpose.
const (
	Unknown    Outcome = iota // it may have been applied
	Succeeded                 // a complete success
	Refused                   // a final refusal by the operator: stored and repeated
	NotApplied                // certainly not applied
)

// Result is the part of a response that is common to all calls.
type Result struct {
	Outcome Outcome
	// Fault is the error for the merchant unless Outcome is Succeeded: OperatorError, IntegrationRejected,
	// OperatorUnavailable or OutcomeUnknown, with the cause for the log.
	Fault *fault.Fault
	// DuplicateKey is set with Unknown if the operator reports a duplicate key. A payment is then looked up at once.
	// After a retry of an SMS (409 SVC0005) the caller reads it as Succeeded. With Succeeded it means that the driver's
	// own retry met its first attempt.
	DuplicateKey bool
	// HTTPStatus is the status of the operator's last response, 0 for none. It is for people: Outcome decides.
	HTTPStatus int
	// Code is the operator's own code of a call that did not succeed: one that the driver knows, or
	// timeline.UnknownCode; "" for none. It is for people.
	Code string
	// OperatorReference is the operator's id of the transaction, with Succeeded or DuplicateKey; "" if there is none.
	OperatorReference string
}

// The causes in a Fault that are counted apart. Each needs a person, and the merchant did nothing wrong.
var (
	// ErrNoUnits is in a NotApplied refusal of an account that has no units left, or no contract for them. The
	// credentials are good. The refusal is not stored, because the same request succeeds after a top-up.
	ErrNoUnits = logsafe.New("the operator's account has no units left: buy units")
	// ErrUnmappedCode is in a NotApplied refusal by a code that the driver does not know. The credentials may be good.
	ErrUnmappedCode = logsafe.New("the operator refused with a code that its driver does not know")
	// ErrCredentialsRefused means that the operator refused our credentials. It matters with Unknown: each
	// IntegrationRejected without one of the others counts as refused credentials anyway.
	ErrCredentialsRefused = logsafe.New("the operator refused our credentials")
)

// Call is the part of a call that is common to all operations.
type Call struct {
	Platform    string // name in the table, pinned in the entry
	AccountID   string // the credentials, pinned in the entry; "" selects the current ones
	Operator    string // mno-name
	UpstreamKey string // Entry.UpstreamKey: the key of the transaction at the platform
	OrderID     string // payments: the merchant's order_id
	// DriverData is what the driver keeps with the entry for later calls, from Prepare or PayResponse; "" for none.
	DriverData string
	MCO        string // operator code of the country
	Country    string // alpha-2
	// MayRepeat is true if an earlier attempt under UpstreamKey may have reached the operator.
	MayRepeat bool
	// GWToken and GWAlias are the merchant's per-user values: passed on unchanged, never logged.
	GWToken string
	GWAlias string
}

// IsAccountCheck reports whether the call is the lookup that checks an account. Its DriverData is its order_id, which
// no platform makes. A driver whose lookups need DriverData reports OrderNotFound only then: otherwise a payment that
// the platform has forgotten would expire.
func (c Call) IsAccountCheck() bool { return c.DriverData != "" && c.DriverData == c.OrderID }

// ChargeCall is a one-time charge. Texts are sent as the merchant wrote them.
type ChargeCall struct {
	Call
	ReferenceCode string
	Amount        string
	Currency      string
	Description   string
	OnBehalfOf    string
}

// PayCall is a mobile money payment.
type PayCall struct {
	Call
	Channel   string // web, tpe, ussd
	Lang      string // fr or en
	Amount    string
	Currency  string
	ReturnURL string
	CancelURL string
	NotifyURL string // our callback
	Reference string
	MSISDN    string // as sent; "" if absent
	OTP       string // "" if absent; never stored, never logged
	State     string
}

// PayResponse is an operator's response to a payment. The page's fields are set only on the web channel.
type PayResponse struct {
	Result
	// DriverData is stored with the entry, and is Call.DriverData of every later call; at most 512 characters.
	DriverData string
	PayToken   string
	PaymentURL string
	NotifToken string
}

// SMSCall is an outbound SMS.
type SMSCall struct {
	Call
	ISE2       string // X-Operator-ISE2: the end user's alias
	Sender     string // tel:+digits
	SenderName string
	// SenderNames are the merchant's; empty for any.
	SenderNames []string
	Message     string // as the merchant sent it, with its escaping
	NotifyURL   string // our callback
}

// StatusCall looks up the status of a payment.
type StatusCall struct {
	Call
	Channel  string
	Lang     string
	Amount   string // as the merchant sent it
	Currency string
}

// StatusResponse is the result of a status lookup.
type StatusResponse struct {
	StatusReport
	OrderNotFound bool  // the platform reports that the payment does not exist
	Cause         error // set unless Status is
}

// ErrUnknownStatus is the cause of a lookup whose response has a status that the driver does not know.
var ErrUnknownStatus = logsafe.New("the operator returned an unknown status")

// Responded reports whether the platform responded to the lookup as to a request with valid credentials.
func (r StatusResponse) Responded() bool {
	return r.Status != "" || r.OrderNotFound || errors.Is(r.Cause, ErrUnknownStatus)
}

// StatusReport is what a platform reports on a payment, in a lookup or in a callback. Absent texts are "".
type StatusReport struct {
	// Status is "" if the platform reported none that the driver knows: that proves nothing.
	Status            ledger.Status
	Amount            string // a decimal
	Currency          string
	MSISDN            string
	OperatorReference string
	// Reason is why a payment failed, "" for no reason that we know. Code is the platform's own code of it, for people:
	// one that the driver knows, or timeline.UnknownCode; "" for none.
	Reason ledger.FailureReason
	Code   string
}

// CallbackReport is a platform's callback on a payment. A Status of "" means that the callback cannot be read, or names
// a status that the driver does not know: the payment is looked up.
type CallbackReport struct {
	StatusReport
	OrderID     string // the merchant's order_id, "" if the platform does not return it
	UpstreamKey string // "" if it is not returned
	NotifToken  string // the token of the payment's page, "" if it is not returned
}

// PaymentCallbackReader is implemented by drivers whose platforms call back on payments. The caller has verified the
// address, or with StaticCallback the account.
type PaymentCallbackReader interface {
	ReadPaymentCallback(body []byte) CallbackReport
}

// PaymentChecker is implemented by drivers whose platforms take less than the specification. It calls nothing outside.
// The fault names the part of the merchant's request that the platform does not take, or is IntegrationRejected for an
// account that cannot be used. The call has no NotifyURL.
type PaymentChecker interface {
	CheckPayment(ctx context.Context, call PayCall) *fault.Fault
}

// MessageChecker is a PaymentChecker for messages.
type MessageChecker interface {
	CheckMessage(ctx context.Context, call SMSCall) *fault.Fault
}

// StaticCallback is a callback to an account's one address.
type StaticCallback struct {
	Platform   string
	AccountID  string
	PathSecret string // the last segment of the address
	Header     func(name string) string
	Body       []byte // as received
}

// StaticCallbackVerifier is implemented by drivers of platforms with static callbacks. It reports whether the account's
// platform sent the callback, by the secret in the path. If the account has keys for signatures, it also verifies one
// over the raw body, with a time of at most 5 minutes ago. It reads no database. An error means that the account cannot
// be read: the platform should retry.
type StaticCallbackVerifier interface {
	VerifyStaticCallback(ctx context.Context, callback StaticCallback) (bool, error)
}

// ReceiptReader is implemented by drivers whose platforms send the receipts of all messages to one address. It returns
// the message's OperatorReference and its delivery statuses in their order; false if the receipt cannot be read.
type ReceiptReader interface {
	ReadReceipt(body []byte) (operatorReference string, statuses []ledger.Status, ok bool)
}

// Driver is implemented for every operator platform. Each operation that a platform offers is an optional interface of
// its driver, such as Charger. A context always has a deadline, and a driver returns before it. A driver keeps no state
// of a transaction, and repeats on its own only what its capabilities declare safe.
type Driver interface {
	// FindAccount returns the id of a platform's credentials for a new call, so that the reservation pins them: id, or
	// the current one for "". It makes no call except to the secret's source. An error is a *fault.Fault of kind
	// IntegrationRejected: there are no usable credentials, and nothing may be reserved.
	FindAccount(ctx context.Context, platform, id string) (string, error)
}

// StatusLookup is implemented by drivers of operators with a status lookup for payments.
type StatusLookup interface {
	LookUpPayment(ctx context.Context, call StatusCall) StatusResponse
}

// AccountChecker is implemented by drivers whose platforms show the configuration of an account. It compares that with
// the row and with what the driver sends, for the services that have a route to the account. It moves no money. notes
// are facts for people; the error is what does not fit, or why the configuration cannot be read.
type AccountChecker interface {
	CheckAccount(ctx context.Context, call Call, services []Service) (notes []string, err error)
}

// UserSMSCall is the SMS to a payer after a successful payment (decision "user-sms"). UpstreamKey is the order_id.
// GWToken and GWAlias stay empty, because the driver has its own.
type UserSMSCall struct {
	Call
	MSISDN string // the payer's number in E.164, with "+"
	Text   string // plain text of at most 160 characters; the driver escapes it
}

// Preparer is implemented by drivers whose platform makes its own key of a payment before the payment itself. Prepare
// moves no money: a lost response is harmless. The caller stores driverData before it calls Pay, and never prepares an
// entry with DriverData again. Each outcome but Succeeded is NotApplied.
type Preparer interface {
	Prepare(ctx context.Context, call PayCall) (driverData string, result Result)
}

// UserSMSSender is implemented by drivers that can send the payer's SMS.
type UserSMSSender interface {
	SendUserSMS(ctx context.Context, call UserSMSCall) Result
}
