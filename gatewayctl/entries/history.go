package entries

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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

// Event is one line of a history.
type Event struct {
	At     time.Time `json:"at,omitzero"`
	What   string    `json:"what"`
	Detail string    `json:"detail,omitempty"`
}

// SortEvents sorts events by time. Those without a time come last.
func SortEvents(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		if a.At.IsZero() != b.At.IsZero() {
			return b.At.Compare(a.At)
		}
		return a.At.Compare(b.At)
	})
}

// EventRows are the rows of events.
func EventRows(events []Event) output.Table {
	return output.MapAll(events, func(e Event) []string {
		return []string{output.FormatTime(e.At), e.What, e.Detail}
	})
}

// History is a transaction with its events.
type History struct {
	View
	FirstSent    string    `json:"first_sent_at" row:"first sent"` // "never" if nothing can have been sent
	CallAttempts []Call    `json:"call_attempts"`
	NextLookup   time.Time `json:"next_lookup_at,omitzero" row:"next lookup"`
	NoLookup     string    `json:"no_lookup_reason,omitempty" row:"no lookup"`
	Events       []Event   `json:"events"`
}

// HistoryOf lists an entry's events in the order of time. Those without a time come last.
func HistoryOf(e *ledger.Entry, now time.Time) History {
	h := History{
		View: ViewOf(e), FirstSent: cmp.Or(output.FormatTime(firstSend(e)), "never"),
		CallAttempts: Calls(e),
	}
	h.NextLookup, h.NoLookup = nextLookup(e, now)
	addEvent := func(at time.Time, what, detail string) {
		if !at.IsZero() {
			h.Events = append(h.Events, Event{at, what, detail})
		}
	}
	addEvent(e.CreatedAt, "created", "")
	addEvent(firstSend(e), "first sent", "to "+e.Route.Operator+" with account "+e.Route.Account)
	h.Events = append(h.Events, callEvents(e)...)
	if e.Response.Status != 0 {
		h.Events = append(h.Events, Event{What: "response stored for repeats", Detail: responseText(e)})
	}
	for _, c := range e.Conflicts {
		addEvent(c.At, "conflict",
			fmt.Sprintf("%s reported %s, recorded and not applied: %s", c.Source, c.Status, c.Reason))
	}
	if e.Claim.Status != "" {
		addEvent(e.Claim.At, "claim", fmt.Sprintf("the operator's callback claims %s; next status lookup at %s",
			e.Claim.Status, output.FormatTime(e.Claim.CheckAt)))
	}
	addEvent(e.FinalAt, "final", string(e.Status))
	if e.Manual.Outcome != "" {
		addEvent(e.Manual.At, "resolved manually", fmt.Sprintf("%s, by %s: %s; operator's reference: %s",
			e.Manual.Outcome, e.Manual.Who, e.Manual.Reason, cmp.Or(e.Manual.Reference, "none")))
	}
	h.Events = append(h.Events, NotificationEvents(e)...)
	h.Events = append(h.Events, Event{e.UpdatedAt, "last written", fmt.Sprintf("version %d, %s", e.Version, e.State)})
	if e.State == ledger.Reserved {
		addEvent(e.LeaseUntil, "lease ends", "")
	}
	addEvent(h.NextLookup, "next lookup", "after "+output.Plural(e.Poll.Attempts, "lookup")+" since the last news")
	if e.Kind != ledger.Payment && e.State == ledger.Unknown {
		addEvent(e.Poll.At, "listed again for a person", "")
	}
	addEvent(e.UserSMS.At, "next user SMS", "")
	addEvent(e.ExpireAt, "expires", "")
	SortEvents(h.Events)
	return h
}

// ShowHistory shows the history of an entry.
func ShowHistory(s *session.Session, e *ledger.Entry) error {
	view := HistoryOf(e, s.Now())
	return s.Show(view, append(append(output.Rows(view), []string{""}), EventRows(view.Events)...))
}

// responseText is the stored response to the merchant: its status, and the message id of an error.
func responseText(e *ledger.Entry) string {
	var body struct {
		RequestError map[string]struct {
			MessageID string `json:"messageId"`
		} `json:"requestError"`
	}
	text := strconv.Itoa(e.Response.Status)
	if json.Unmarshal(e.Response.Body, &body) == nil {
		for _, exception := range body.RequestError {
			text += " " + exception.MessageID
		}
	}
	return text
}
