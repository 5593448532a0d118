// Package payment writes the body of a mobile money payment. The response of the tpe and ussd channels, getStatus and
// the merchant's notification have the same fields with another meta.type (specification, Payment notification;
// decision "pay-extra-fields").
//
// It does not send the body. Its invariant: the merchant's own values are returned as they were sent, and a one-time
// code is only in the response to the request that has it.
package payment

import (
	"bytes"
	"slices"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/strictjson"
)

// The values of meta.type.
const (
	TypeResponse     = "payment"
	TypeNotification = "payment-notif"
)

// dateLayout is the form of date, in UTC.
const dateLayout = "2006-01-02 15:04:05"

// statusDescriptions are the texts of statusDescription, except those of a failed payment.
var statusDescriptions = map[ledger.Status]string{
	ledger.Pending:    "Payment is waiting for the customer's approval",
	ledger.Successful: "Payment was successful",
	ledger.Cancelled:  "Payment was cancelled by the customer",
	ledger.Expired:    "Payment expired without approval",
}

// failureDescriptions are the texts of statusDescription of a failed payment.
var failureDescriptions = map[ledger.FailureReason]string{
	ledger.RefusedByPayer: "Payment failed: refused by the payer",
	ledger.NotEnoughFunds: "Payment failed: not enough funds",
	ledger.LimitReached:   "Payment failed: a limit is reached",
	ledger.WalletUnknown:  "Payment failed: the payer's wallet is unknown",
	ledger.TimedOut:       "Payment failed: timed out",
	ledger.OperatorError:  "Payment failed: operator error",
}

type meta struct {
	Type    string `json:"type"`
	Source  string `json:"source"`
	Channel string `json:"channel"`
}

// body has the specification's fields in its order, then the four that clients of this family of APIs read, then
// failureReason. An absent user_msisdn is left out (decision "pay-optional-fields").
type body struct {
	Meta              meta          `json:"meta"`
	Status            ledger.Status `json:"status"`
	Amount            string        `json:"amount"`
	OrderID           string        `json:"order-id"`
	Currency          string        `json:"currency"`
	Reference         string        `json:"reference"`
	CountryCode       string        `json:"country-code"`
	State             string        `json:"state"`
	UserMSISDN        string        `json:"user_msisdn,omitempty"`
	TransactionID     string        `json:"Transaction-id"`
	NotifToken        string        `json:"notif_token,omitempty"`
	Date              string        `json:"date"`
	IntTransactionID  string        `json:"intTransaction-id"`
	ExtTransactionID  string        `json:"extTransaction-id"`
	StatusDescription string        `json:"statusDescription"`
	// FailureReason is absent while the payment is pending, and if it is successful.
	FailureReason ledger.FailureReason `json:"failureReason,omitempty"`
}

// ResponseBody returns the body of the tpe and ussd response, and of getStatus, without otp_code.
func ResponseBody(e *ledger.Entry, status ledger.Status) []byte {
	b := newBody(e, status)
	b.Meta.Type, b.ExtTransactionID = TypeResponse, e.Reference()
	return strictjson.Marshal(b)
}

// InsertOTP inserts the one-time code of the current request into a stored response, in the specification's place. The
// code is never stored, so ResponseBody does not have it (decision "pay-otp"). An empty code changes nothing.
func InsertOTP(stored []byte, otp string) []byte {
	// Quotes are escaped inside a JSON string, so this text can only be the beginning of the field.
	at := bytes.Index(stored, []byte(`,"Transaction-id":`))
	if otp == "" || at < 0 {
		return stored
	}
	field := append([]byte(`,"otp_code":`), strictjson.Marshal(otp)...)
	return slices.Concat(stored[:at], field, stored[at:])
}

// NotificationBody returns the body of the merchant's notification of a status. On the web channel it has notif_token,
// which the merchant compares. It has what was known when it was queued, so that each attempt has the same body.
func NotificationBody(e *ledger.Entry, status ledger.Status) []byte {
	b := newBody(e, status)
	b.Meta.Type = TypeNotification
	if e.Request.Channel == "web" {
		b.NotifToken = e.Outbox.NotifToken
	}
	return strictjson.Marshal(b)
}

func newBody(e *ledger.Entry, status ledger.Status) body {
	date := e.CreatedAt
	if status != ledger.Pending && !e.FinalAt.IsZero() {
		date = e.FinalAt
	}
	reason, description := e.WhyNotPaid(status), statusDescriptions[status]
	if status == ledger.Failed {
		description = failureDescriptions[reason]
	}
	return body{
		Meta:              meta{Source: e.Route.Operator, Channel: e.Request.Channel},
		Status:            status,
		Amount:            e.Amount.AsSent,
		OrderID:           e.ID,
		Currency:          e.Amount.Currency,
		Reference:         e.Request.Reference,
		CountryCode:       e.Request.CountryAsSent,
		State:             e.Request.State,
		UserMSISDN:        e.Request.MSISDN,
		TransactionID:     e.Request.TransactionID,
		Date:              date.UTC().Format(dateLayout),
		IntTransactionID:  e.Request.TransactionID,
		ExtTransactionID:  e.OperatorReference,
		StatusDescription: description,
		FailureReason:     reason,
	}
}
