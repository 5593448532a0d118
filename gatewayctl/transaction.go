package gatewayctl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operator"
)

type paymentShow struct {
	OrderID string `arg:"" help:"The order_id."`
}

// Run shows the payment.
func (c *paymentShow) Run(s *session) error {
	return showEntry(s, ledger.Payment, c.OrderID)
}

// transactionArgument names a charge or an SMS by its id, or by its merchant's own key.
type transactionArgument struct {
	ID         string `arg:"" optional:"" help:"The id."`
	Merchant   string `placeholder:"NAME" help:"Instead of the id: the merchant's name or id."`
	Correlator string `placeholder:"TEXT" help:"With --merchant: the clientCorrelator."`
}

// show shows the entry. reference is the merchant's own key of a charge that has no clientCorrelator.
func (c transactionArgument) show(s *session, kind ledger.Kind, reference string) error {
	id := c.ID
	if id == "" {
		if c.Merchant == "" || c.Correlator == "" && reference == "" {
			return usageError(`expected "<id>", or --merchant with --correlator (a charge: or --reference)`)
		}
		p, err := s.findMerchant(c.Merchant)
		if err != nil {
			return err
		}
		id = ledger.SMSID(p.ID, c.Correlator)
		if kind == ledger.Charge {
			id = ledger.ChargeID(p.ID, c.Correlator, reference)
		}
	}
	return showEntry(s, kind, id)
}

type chargeShow struct {
	transactionArgument
	Reference string `placeholder:"TEXT" help:"With --merchant: the referenceCode, if there is no clientCorrelator."`
}

// Run shows the charge.
func (c *chargeShow) Run(s *session) error { return c.show(s, ledger.Charge, c.Reference) }

type smsShow struct{ transactionArgument }

// Run shows the SMS.
func (c *smsShow) Run(s *session) error { return c.show(s, ledger.SMS, "") }

// showEntry shows one entry: its facts, and its events in the order of time.
func showEntry(s *session, kind ledger.Kind, id string) error {
	e, err := findEntry(s, id, kind)
	if err != nil {
		return err
	}
	return showHistory(s, e)
}

// findEntry returns the entry with an id and the first of the kinds that has it. It must exist.
func findEntry(s *session, id string, kinds ...ledger.Kind) (*ledger.Entry, error) {
	if err := s.openStores(); err != nil {
		return nil, err
	}
	var labels []string
	for _, kind := range kinds {
		e, err := s.stores.Ledger.Get(s, ledger.Key{Kind: kind, ID: id})
		if err != nil || e != nil {
			return e, err
		}
		labels = append(labels, kindLabel(kind))
	}
	return nil, fmt.Errorf("there is no %s %s: gatewayctl find searches for any id, key, reference or number",
		strings.Join(labels, " and no "), id)
}

func kindLabel(kind ledger.Kind) string {
	switch kind {
	case ledger.Payment:
		return "payment"
	case ledger.SMS:
		return "SMS"
	}
	return string(kind)
}

func showHistory(s *session, e *ledger.Entry) error {
	view := entryHistoryOf(e, s.Now())
	return s.show(view, append(append(viewRows(view), []string{""}), eventRows(view.Events)...))
}

// entryView is an entry for people, programs and exports. It has no token and no alias, and its numbers are masked.
type entryView struct {
	Kind              ledger.Kind         `json:"kind" col:"KIND" row:"kind"`
	ID                string              `json:"id" col:"ID" row:"id"`
	Merchant          string              `json:"merchant" col:"MERCHANT" row:"merchant"`
	CreatedAt         time.Time           `json:"created_at" col:"CREATED"`
	State             ledger.State        `json:"state" col:"STATE" row:"state"`
	Status            ledger.Status       `json:"status,omitempty" col:"STATUS" row:"status"`
	FinalAt           time.Time           `json:"final_at,omitzero"`
	FailureReason     string              `json:"failure_reason,omitempty" row:"failure reason"`
	Amount            string              `json:"amount,omitempty" col:"AMOUNT" row:"amount"`
	Currency          string              `json:"currency,omitempty" col:"CURRENCY" row:"currency"`
	Country           string              `json:"country" row:"country"`
	Operator          string              `json:"operator" col:"OPERATOR" row:"operator"`
	Account           string              `json:"account" row:"account"`
	Channel           string              `json:"channel,omitempty" row:"channel"`
	Correlator        string              `json:"client_correlator,omitempty" row:"clientCorrelator"`
	ReferenceCode     string              `json:"reference_code,omitempty" row:"referenceCode"`
	UpstreamKey       string              `json:"upstream_key" row:"upstream key"`
	OperatorReference string              `json:"operator_reference,omitempty" row:"operator's reference"`
	PaymentID         string              `json:"transaction_id,omitempty" row:"Transaction-id"`
	MSISDN            string              `json:"msisdn,omitempty" row:"payer"`
	NotifyURL         string              `json:"notify_url,omitempty" row:"notified at"`
	ResponseStatus    int                 `json:"response_status,omitempty"`
	EverUnknown       bool                `json:"ever_unknown"`
	UserSMS           ledger.UserSMSState `json:"user_sms,omitempty" row:"user SMS"`
	Conflicts         int                 `json:"conflicts"`
}

func entryViewOf(e *ledger.Entry) entryView {
	view := entryView{
		Kind: e.Kind, ID: e.ID, Merchant: e.Merchant, CreatedAt: e.CreatedAt, State: e.State, Status: e.Status,
		FinalAt: e.FinalAt, FailureReason: string(e.WhyNotPaid(e.Status)),
		Currency: e.Currency, Country: e.Country, Operator: e.Operator, Account: e.Account,
		Channel: e.Channel, Correlator: e.Correlator, ReferenceCode: e.ReferenceCode, UpstreamKey: e.UpstreamKey,
		OperatorReference: cmp.Or(e.OperatorReference, e.ManualReference),
		PaymentID:         e.TransactionID, MSISDN: msisdn.Mask(e.PayerMSISDN()),
		NotifyURL: maskQueries(e.NotifyURL), ResponseStatus: e.ResponseStatus, EverUnknown: e.EverUnknown,
		UserSMS:   e.UserSMS,
		Conflicts: len(e.Conflicts),
	}
	if e.Currency != "" {
		view.Amount = money.Format(e.AmountMinor, e.Exponent)
	}
	return view
}

type historyEvent struct {
	At     time.Time `json:"at,omitzero"`
	What   string    `json:"what"`
	Detail string    `json:"detail,omitempty"`
}

// sortEvents sorts events by time. Those without a time come last.
func sortEvents(events []historyEvent) {
	slices.SortStableFunc(events, func(a, b historyEvent) int {
		if a.At.IsZero() != b.At.IsZero() {
			return b.At.Compare(a.At)
		}
		return a.At.Compare(b.At)
	})
}

func eventRows(events []historyEvent) table {
	return mapAll(events, func(e historyEvent) []string { return []string{formatTime(e.At), e.What, e.Detail} })
}

type entryHistory struct {
	entryView
	FirstSent    string            `json:"first_sent_at" row:"first sent"` // "never" if nothing can have been sent
	CallAttempts []callAttemptView `json:"call_attempts"`
	NextLookup   time.Time         `json:"next_lookup_at,omitzero" row:"next lookup"`
	NoLookup     string            `json:"no_lookup_reason,omitempty" row:"no lookup"`
	Events       []historyEvent    `json:"events"`
}

// entryHistoryOf lists an entry's events in the order of time. Those without a time come last.
func entryHistoryOf(e *ledger.Entry, now time.Time) entryHistory {
	h := entryHistory{
		entryView: entryViewOf(e), FirstSent: cmp.Or(formatTime(firstSend(e)), "never"),
		CallAttempts: callAttemptViews(e),
	}
	h.NextLookup, h.NoLookup = nextLookup(e, now)
	addEvent := func(at time.Time, what, detail string) {
		if !at.IsZero() {
			h.Events = append(h.Events, historyEvent{at, what, detail})
		}
	}
	addEvent(e.CreatedAt, "created", "")
	addEvent(firstSend(e), "first sent", "to "+e.Operator+" with account "+e.Account)
	h.Events = append(h.Events, callEvents(e)...)
	if e.ResponseStatus != 0 {
		h.Events = append(h.Events, historyEvent{What: "response stored for repeats", Detail: responseText(e)})
	}
	for _, c := range e.Conflicts {
		addEvent(c.At, "conflict",
			fmt.Sprintf("%s reported %s, recorded and not applied: %s", c.Source, c.Status, c.Reason))
	}
	if e.Claim.Status != "" {
		addEvent(e.Claim.At, "claim", fmt.Sprintf("the operator's callback claims %s; next status lookup at %s",
			e.Claim.Status, formatTime(e.Claim.CheckAt)))
	}
	addEvent(e.FinalAt, "final", string(e.Status))
	if e.Manual.Outcome != "" {
		addEvent(e.Manual.At, "resolved manually", fmt.Sprintf("%s, by %s: %s; operator's reference: %s",
			e.Manual.Outcome, e.Manual.Who, e.Manual.Reason, cmp.Or(e.ManualReference, "none")))
	}
	h.Events = append(h.Events, notificationEvents(e)...)
	h.Events = append(h.Events,
		historyEvent{e.UpdatedAt, "last written", fmt.Sprintf("version %d, %s", e.Version, e.State)})
	if e.State == ledger.Reserved {
		addEvent(e.LeaseUntil, "lease ends", "")
	}
	addEvent(h.NextLookup, "next lookup", "after "+plural(e.PollAttempts, "lookup")+" since the last news")
	if e.Kind != ledger.Payment && e.State == ledger.Unknown {
		addEvent(e.PollAt, "listed again for a person", "")
	}
	addEvent(e.UserSMSAt, "next user SMS", "")
	addEvent(e.ExpireAt, "expires", "")
	sortEvents(h.Events)
	return h
}

type callAttemptView struct {
	At         time.Time `json:"at"`
	Seconds    float64   `json:"seconds"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason,omitempty"`
	HTTPStatus int       `json:"operator_status,omitempty"`
	Response   int       `json:"response_status,omitempty"` // of the response to the merchant
}

// callAttemptViews lists an entry's attempts. A success at once has no attempt of its own: the entry describes it.
func callAttemptViews(e *ledger.Entry) []callAttemptView {
	const perSecond = 1000
	if len(e.CallAttempts) == 0 && e.State == ledger.Done && e.ResponseStatus != 0 && !e.EverUnknown {
		return []callAttemptView{{At: e.ReservedAt, Outcome: ledger.CallSucceeded, Response: e.ResponseStatus}}
	}
	return mapAll(e.CallAttempts, func(a ledger.CallAttempt) callAttemptView {
		return callAttemptView{
			a.At, float64(a.Millis) / perSecond, a.Outcome, a.Reason, a.HTTPStatus, a.Response,
		}
	})
}

func callEvents(e *ledger.Entry) []historyEvent {
	return mapAll(callAttemptViews(e), func(a callAttemptView) historyEvent {
		detail := a.Outcome
		if a.Reason != "" {
			detail += ": " + a.Reason
		}
		if a.Outcome == ledger.CallLapsed {
			detail = "no outcome was recorded: the function died, or could not store it"
		}
		if a.Seconds > 0 {
			detail += fmt.Sprintf(", after %.1f s", a.Seconds)
		}
		if a.HTTPStatus != 0 {
			detail += fmt.Sprintf(", the operator responded %d", a.HTTPStatus)
		}
		if a.Response != 0 {
			detail += fmt.Sprintf(", the merchant was sent %d", a.Response)
		}
		return historyEvent{a.At, "call attempt", detail}
	})
}

// responseText is the stored response to the merchant: its status, and the message id of an error.
func responseText(e *ledger.Entry) string {
	var body struct {
		RequestError map[string]struct {
			MessageID string `json:"messageId"`
		} `json:"requestError"`
	}
	text := strconv.Itoa(e.ResponseStatus)
	if json.Unmarshal(e.ResponseBody, &body) == nil {
		for _, exception := range body.RequestError {
			text += " " + exception.MessageID
		}
	}
	return text
}

// firstSend returns when the first request can have reached the operator, zero for never.
func firstSend(e *ledger.Entry) time.Time {
	for _, a := range e.CallAttempts {
		if a.Outcome != ledger.CallNotSent && (a.Outcome != ledger.CallNotApplied || a.HTTPStatus != 0) {
			return a.At
		}
	}
	switch {
	case e.State == ledger.Released && (len(e.CallAttempts) > 0 || e.Fingerprint == ""):
		return time.Time{}
	case len(e.CallAttempts) > 0:
		return e.ReservedAt
	}
	return e.SentAt
}

// nextLookup returns when the gateway looks the entry up again, or why it does not.
func nextLookup(e *ledger.Entry, now time.Time) (at time.Time, reason string) {
	row := operator.CapabilitiesOf(e)
	switch {
	case e.StatusFinal() && (e.Kind == ledger.Payment || e.State != ledger.Unknown):
		return at, "its status is final"
	case e.Unknowable():
		return at, "it was closed as unknowable: only a receipt or a later decision ends it"
	case e.Leased(now):
		return at, "an attempt is in flight until " + formatTime(e.LeaseUntil)
	case e.Kind != ledger.Payment && (e.State == ledger.Unknown || e.State == ledger.Reserved):
		return at, "no operator has a status lookup for it: " + resendAdvice(e, row, now)
	case e.Kind != ledger.Payment:
		return at, "its outcome is known"
	case e.State == ledger.Reserved:
		return e.LeaseUntil.Add(ledger.LapseMargin), ""
	case e.State == ledger.Released && e.Claim.Status == "":
		return at, "it was certainly not applied"
	case !row.HasStatusLookup:
		return at, "operator " + e.Operator + " has no status lookup"
	case e.PollAt.IsZero() || !e.Claim.CheckAt.IsZero() && e.Claim.CheckAt.Before(e.PollAt):
		return e.Claim.CheckAt, ""
	}
	return e.PollAt, ""
}

// resendAdvice returns what can end an unknown outcome that has no lookup.
func resendAdvice(e *ledger.Entry, row operator.Capabilities, now time.Time) string {
	if end := retryEnd(e, now); !end.IsZero() {
		return "the merchant may send the same request again until " + formatTime(end)
	}
	if !hasKeyAtOperator(e, row) {
		return fmt.Sprintf("operator %s got no key of it. Search its records by the time %s, the sender %s and the "+
			"recipient, which the merchant knows (operator's reference: %s). Otherwise close it as unknowable",
			e.Operator, formatTime(e.SentAt), e.Sender, cmp.Or(e.OperatorReference, "none"))
	}
	return "get the outcome from the operator by the upstream key"
}
