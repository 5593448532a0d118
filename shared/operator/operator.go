// Package operator is the southbound side: the narrow interface that an operator's driver implements, the table of
// operators with what each can do, and the outcomes that a call can have.
//
// It decides nothing about transactions. Its invariant: an outcome is Done, Refused or Released only when that is
// certain; everything else is Unknown, which is the zero value.
package operator

import (
	"context"
	"time"

	"mobilegateway/shared/fault"
)

// Outcome says what became of a call (decision "outcomes").
type Outcome int

// The outcomes. The zero value is Unknown on purpose.
const (
	Unknown    Outcome = iota // it may have been applied
	Succeeded                 // a complete success
	Refused                   // a final refusal by the operator: stored and replayed
	NotApplied                // certainly not applied
)

// Result is the part of an answer that is common to all calls.
type Result struct {
	Outcome Outcome
	// Fault is what the merchant is told when Outcome is not Done: OperatorError, IntegrationRejected, OperatorUnavailable or
	// OutcomeUnknown, with the cause for the log.
	Fault *fault.Fault
	// DuplicateKey is set with Unknown when the operator said that the key is a duplicate (SMS, 409 SVC0005): on a re-send the
	// caller reads it as Done. With Done it says that the driver's own re-send met its first send.
	DuplicateKey bool
	// OperatorReference is the operator's own id of the transaction, with Done or Duplicate, "" where it gave none.
	OperatorReference string
}

// Call is what every operation hands to a driver.
type Call struct {
	Operator       string // name in the table
	AccountID      string // which credentials to use: pinned in the entry; "" lets the driver choose and return it
	IdempotencyKey string // the upstream key: clientCorrelator (charge, SMS) or order_id (payment)
	MCO            string // operator code of the country
	Country        string // alpha-2
	// MayRepeat is true when an earlier attempt under Key may have reached the operator.
	MayRepeat bool
	// GWToken and GWAlias are the merchant's per-user values, passed on unchanged, never logged.
	GWToken string
	GWAlias string
}

// ChargeCall is a one-time charge. Texts go up as the merchant sent them.
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

// PayResponse is what an operator answered to a payment; the page's fields for the web channel alone.
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
	Message    string // as the merchant sent it: escaping untouched
	NotifyURL  string // our callback
}

// StatusCall asks what became of a payment.
type StatusCall struct {
	Call
	Channel string
	Lang    string
}

// StatusResponse is what getStatus told. Known is false where the operator did not answer, or knows no such order.
type StatusResponse struct {
	StatusKnown       bool
	OrderNotFound     bool   // the operator answered that there is no such order
	OperatorStatus    string // the operator's word; callers map it with ParsePaymentStatus
	Amount            string
	Currency          string
	MSISDN            string
	OperatorReference string
	Cause             error // why Known is false
}

// Driver is what every operator platform can do. A context's deadline is always set; a driver returns before it.
// A driver keeps no state of a transaction, and re-sends nothing on its own but what its capabilities declare safe.
type Driver interface {
	// CurrentAccountID tells which credentials a new call for the operator would use, so that the ledger pins them at the
	// reservation. It calls nobody but, at times, the secret's source. An error is a *fault.Fault IntegrationRejected:
	// the operator has no usable credentials, and nothing may be reserved.
	CurrentAccountID(ctx context.Context, operatorName string) (string, error)
	Charge(ctx context.Context, call ChargeCall) Result
	Pay(ctx context.Context, call PayCall) PayResponse
	SendSMS(ctx context.Context, call SMSCall) Result
}

// StatusLookup is implemented by drivers whose operator offers a status lookup for payments.
type StatusLookup interface {
	LookUpPayment(ctx context.Context, call StatusCall) StatusResponse
}

// UserSMSCall is the SMS to a purchaser whose payment was successful (decision "user-sms"). Key is the order_id; the
// per-user values of Call stay empty, the driver has its own.
type UserSMSCall struct {
	Call
	MSISDN string // the purchaser's number in E.164, with "+"
	Text   string // plain text of at most 160 characters; the driver escapes it
}

// UserSMSSender is implemented by drivers that can send the purchaser's SMS.
type UserSMSSender interface {
	SendUserSMS(ctx context.Context, call UserSMSCall) Result
}

// OTPRule says what an operator makes of otp_code on the tpe and ussd channels.
type OTPRule int

// The rules. On the web channel otp_code is unused everywhere.
const (
	OTPOptional OTPRule = iota
	OTPRequired
	OTPUnused
)

// Capabilities declare what an operator can do. They are data, one row an operator.
type Capabilities struct {
	// Operator is the name in the mno-name header, lower case.
	Operator string
	// DriverName names the driver that speaks to it.
	DriverName string
	// Countries are the alpha-2 codes it serves, Channels its payment channels.
	Countries []string
	Channels  []string
	// IdempotencyWindow is how long from the first send a repeat under the same key is safe; 0: never.
	IdempotencyWindow time.Duration
	// HasStatusLookup is true where the driver implements StatusLookup for it.
	HasStatusLookup bool
	// OTPRule is the rule for otp_code on tpe and ussd.
	OTPRule OTPRule
	// SendsUserSMS is true where the operator itself sends the purchaser's SMS after a payment.
	SendsUserSMS bool
	// UserSMSTemplates is the wording of that SMS where the gateway sends it.
	UserSMSTemplates UserSMSTemplates
}
