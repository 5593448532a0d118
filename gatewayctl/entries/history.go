package entries

import (
	"cmp"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
)

// View is an entry for people, programs and exports. It has no token and no alias, and its numbers are masked.
type View struct {
	Kind          ledger.Kind   `json:"kind" col:"KIND" row:"kind"`
	ID            string        `json:"id" col:"ID" row:"id"`
	Merchant      string        `json:"merchant" col:"MERCHANT" row:"merchant"`
	CreatedAt     time.Time     `json:"created_at" col:"CREATED"`
	State         ledger.State  `json:"state" col:"STATE" row:"state"`
	Status        ledger.Status `json:"status,omitempty" col:"STATUS" row:"status"`
	FinalAt       time.Time     `json:"final_at,omitzero"`
	FailureReason string        `json:"failure_reason,omitempty" row:"failure reason"`
	Amount        string        `json:"amount,omitempty" col:"AMOUNT" row:"amount"`
	Currency      string        `json:"currency,omitempty" col:"CURRENCY" row:"currency"`
	Service
	Keys
	MSISDN         string              `json:"msisdn,omitempty" row:"payer"`
	NotifyURL      string              `json:"notify_url,omitempty" row:"notified at"`
	ResponseStatus int                 `json:"response_status,omitempty"`
	EverUnknown    bool                `json:"ever_unknown"`
	UserSMS        ledger.UserSMSState `json:"user_sms,omitempty" row:"user SMS"`
	Conflicts      int                 `json:"conflicts"`
}

// Service is what serves a transaction.
type Service struct {
	Country  string `json:"country" row:"country"`
	Operator string `json:"operator" col:"OPERATOR" row:"operator"`
	Account  string `json:"account" row:"account"`
	Channel  string `json:"channel,omitempty" row:"channel"`
}

// Keys are what a merchant and an operator call a transaction, beside its id.
type Keys struct {
	Correlator        string `json:"client_correlator,omitempty" row:"clientCorrelator"`
	ReferenceCode     string `json:"reference_code,omitempty" row:"referenceCode"`
	UpstreamKey       string `json:"upstream_key" row:"upstream key"`
	OperatorReference string `json:"operator_reference,omitempty" row:"operator's reference"`
	PaymentID         string `json:"transaction_id,omitempty" row:"Transaction-id"`
}

// ViewOf returns the view of an entry.
func ViewOf(e *ledger.Entry) View {
	view := View{
		Kind: e.Kind, ID: e.ID, Merchant: e.Merchant.Name, CreatedAt: e.CreatedAt, State: e.State, Status: e.Status,
		FinalAt: e.FinalAt, FailureReason: string(e.WhyNotPaid(e.Status)),
		Currency: e.Amount.Currency,
		Service: Service{
			Country: e.Route.Country, Operator: e.Route.Operator, Account: e.Route.Account, Channel: e.Request.Channel,
		},
		Keys: Keys{
			Correlator: e.Request.Correlator, ReferenceCode: e.Request.ReferenceCode, UpstreamKey: e.Route.UpstreamKey,
			OperatorReference: cmp.Or(e.Reference(), e.Manual.Reference), PaymentID: e.Request.TransactionID,
		},
		MSISDN: msisdn.Mask(e.PayerMSISDN()), NotifyURL: output.MaskQueries(e.Outbox.URL),
		ResponseStatus: e.Response.Status, EverUnknown: e.EverUnknown, UserSMS: e.UserSMS.State,
		Conflicts: len(e.Conflicts),
	}
	if e.Amount.Currency != "" {
		view.Amount = money.Format(e.Amount.Minor, e.Amount.Exponent)
	}
	return view
}

// History is a transaction with its timeline.
type History struct {
	View
	FirstSent    string    `json:"first_sent_at" row:"first sent"` // "never" if nothing can have been sent
	CallAttempts []Call    `json:"call_attempts"`
	NextLookup   time.Time `json:"next_lookup_at,omitzero" row:"next lookup"`
	NoLookup     string    `json:"no_lookup_reason,omitempty" row:"no lookup"`
	Final        *Final    `json:"final,omitempty" row:"final"`
	Next         *Next     `json:"next,omitempty" row:"next"`
	Timeline     []Event   `json:"timeline"`
}

// HistoryOf returns the history of an entry.
func HistoryOf(e *ledger.Entry, now time.Time) History {
	h := History{
		View: ViewOf(e), FirstSent: cmp.Or(output.FormatTime(firstSend(e)), "never"),
		CallAttempts: Calls(e), Final: finalOf(e), Next: nextOf(e), Timeline: timelineOf(e),
	}
	h.NextLookup, h.NoLookup = nextLookup(e, now)
	return h
}

// ShowHistory shows the history of an entry.
func ShowHistory(s *session.Session, e *ledger.Entry) error {
	view := HistoryOf(e, s.Now())
	return s.Show(view, append(append(output.Rows(view), []string{""}), EventRows(view.Timeline)...))
}
