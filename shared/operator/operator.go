// Package operator defines the interface that an operator's driver implements, the table of operators with their
// capabilities, and the outcomes of a call.
//
// It decides nothing about transactions. Its invariant: an outcome is Succeeded, Refused or NotApplied only if that is
// certain. Everything else is Unknown, the zero value.
package operator

import (
	"context"
	"time"

	"mobilegateway/shared/fault"
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
	// DuplicateKey is set with Unknown if the operator reports a duplicate key (SMS, 409 SVC0005). After a retry the
	// caller reads it as Succeeded. With Succeeded it means that the driver's own retry met its first attempt.
	DuplicateKey bool
	// HTTPStatus is the status of the operator's last response, 0 for none. It is for people: Outcome decides.
	HTTPStatus int
	// OperatorReference is the operator's id of the transaction, with Succeeded or DuplicateKey; "" if there is none.
	OperatorReference string
}

// Call is the part of a call that is common to all operations.
type Call struct {
	Operator    string // name in the table
	AccountID   string // the credentials, pinned in the entry; "" selects the current ones
	UpstreamKey string // Entry.UpstreamKey: ledger.UpstreamKey (charge, SMS) or the order_id (payment)
	MCO         string // operator code of the country
	Country     string // alpha-2
	// MayRepeat is true if an earlier attempt under UpstreamKey may have reached the operator.
	MayRepeat bool
	// GWToken and GWAlias are the merchant's per-user values: passed on unchanged, never logged.
	GWToken string
	GWAlias string
}

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
	Message    string // as the merchant sent it, with its escaping
	NotifyURL  string // our callback
}

// StatusCall looks up the status of a payment.
type StatusCall struct {
	Call
	Channel string
	Lang    string
}

// StatusResponse is the result of a status lookup.
type StatusResponse struct {
	StatusKnown       bool   // false if the lookup failed, or the operator does not know the order
	OrderNotFound     bool   // the operator reports that the order does not exist
	OperatorStatus    string // as sent; callers map it with ParsePaymentStatus
	Amount            string
	Currency          string
	MSISDN            string
	OperatorReference string
	// StatusDescription is the operator's text about the status, as sent; "" if there is none. Callers map it with
	// ParseFailureReason and keep no other part of it.
	StatusDescription string
	Cause             error // set unless StatusKnown
}

// Driver is implemented for every operator platform. A context always has a deadline, and a driver returns before it. A
// driver keeps no state of a transaction, and repeats on its own only what its capabilities declare safe.
type Driver interface {
	// CurrentAccountID returns the id of the credentials for a new call, so that the reservation pins them. It makes no
	// call except to the secret's source. An error is a *fault.Fault of kind IntegrationRejected: the operator has no
	// usable credentials, and nothing may be reserved.
	CurrentAccountID(ctx context.Context, operatorName string) (string, error)
	Charge(ctx context.Context, call ChargeCall) Result
	Pay(ctx context.Context, call PayCall) PayResponse
	SendSMS(ctx context.Context, call SMSCall) Result
}

// StatusLookup is implemented by drivers of operators with a status lookup for payments.
type StatusLookup interface {
	LookUpPayment(ctx context.Context, call StatusCall) StatusResponse
}

// UserSMSCall is the SMS to a payer after a successful payment (decision "user-sms"). UpstreamKey is the order_id.
// GWToken and GWAlias stay empty, because the driver has its own.
type UserSMSCall struct {
	Call
	MSISDN string // the payer's number in E.164, with "+"
	Text   string // plain text of at most 160 characters; the driver escapes it
}

// UserSMSSender is implemented by drivers that can send the payer's SMS.
type UserSMSSender interface {
	SendUserSMS(ctx context.Context, call UserSMSCall) Result
}

// OTPRule is an operator's rule for otp_code on the tpe and ussd channels.
type OTPRule int

// The rules. On the web channel otp_code is unused everywhere.
const (
	OTPOptional OTPRule = iota
	OTPRequired
	OTPUnused
)

// Capabilities declare what an operator can do. Each operator has one row.
type Capabilities struct {
	// Operator is the name in the mno-name header, lower case.
	Operator string
	// DriverName is the name of its driver.
	DriverName string
	// Countries are the served countries (alpha-2), Channels the payment channels.
	Countries []string
	Channels  []string
	// ResendWindow is how long after the first send the operator treats a second send under the same key as the first
	// one; 0 means never. The gateway stops 10 minutes before it ends (decision "repeat-window").
	ResendWindow time.Duration
	// HasStatusLookup is true if the driver implements StatusLookup for it.
	HasStatusLookup bool
	// OTPRule is the rule for otp_code on tpe and ussd.
	OTPRule OTPRule
	// SendsUserSMS is true if the operator itself sends the payer's SMS after a payment.
	SendsUserSMS bool
	// UserSMSTemplates are the texts of that SMS if the gateway sends it.
	UserSMSTemplates UserSMSTemplates
}
