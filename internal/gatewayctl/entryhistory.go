package gatewayctl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
)

type paymentCommands struct {
	Show paymentShow `cmd:"" help:"Show a payment's whole history."`
}

type chargeCommands struct {
	Show chargeShow `cmd:"" help:"Show a charge's whole history."`
}

type smsCommands struct {
	Show smsShow `cmd:"" help:"Show an SMS's whole history."`
}

type paymentShow struct {
	OrderID string `arg:"" help:"The order_id."`
}

// Run shows the payment.
func (c *paymentShow) Run(s *session) error {
	return showEntry(s, ledger.Key{Kind: ledger.Payment, ID: c.OrderID})
}

// transactionArgument names a charge or an SMS: by its id, or by what its merchant knows it by.
type transactionArgument struct {
	ID         string `arg:"" optional:"" help:"The id."`
	Merchant   string `placeholder:"NAME" help:"Instead of the id: the merchant, with --correlator or --reference."`
	Correlator string `placeholder:"TEXT" help:"The clientCorrelator."`
}

type chargeShow struct {
	transactionArgument
	Reference string `placeholder:"TEXT" help:"The referenceCode of a charge without a clientCorrelator."`
}

// Run shows the charge.
func (c *chargeShow) Run(s *session) error {
	id := c.ID
	if c.Merchant != "" && (c.Correlator != "" || c.Reference != "") && id == "" {
		p, err := s.findMerchant(c.Merchant)
		if err != nil {
			return err
		}
		id = ledger.ChargeID(p.ID, c.Correlator, c.Reference)
	}
	return showEntry(s, ledger.Key{Kind: ledger.Charge, ID: id})
}

type smsShow struct{ transactionArgument }

// Run shows the SMS.
func (c *smsShow) Run(s *session) error {
	id := c.ID
	if c.Merchant != "" && c.Correlator != "" && id == "" {
		p, err := s.findMerchant(c.Merchant)
		if err != nil {
			return err
		}
		id = ledger.SMSID(p.ID, c.Correlator)
	}
	return showEntry(s, ledger.Key{Kind: ledger.SMS, ID: id})
}

// showEntry shows one entry: its facts, and then what happened in the order of time.
func showEntry(s *session, key ledger.Key) error {
	if key.ID == "" {
		return usageError("name it by its id, or by --merchant with --correlator or --reference")
	}
	stores, err := s.openStores()
	if err != nil {
		return err
	}
	entry, err := stores.Ledger.Get(s, key)
	if err != nil {
		return err
	}
	if entry == nil {
		return fmt.Errorf("there is no %s %s", kindLabel(key.Kind), key.ID)
	}
	return showHistory(s, entry)
}

// kindLabel is a kind as people call it.
func kindLabel(kind ledger.Kind) string {
	switch kind {
	case ledger.Payment:
		return "payment"
	case ledger.SMS:
		return "SMS"
	}
	return string(kind)
}

// showHistory shows an entry in hand.
func showHistory(s *session, e *ledger.Entry) error {
	view := entryHistoryOf(e)
	rows := append(entryRows(view.entryView), []string{""})
	for _, e := range view.Events {
		rows = append(rows, []string{formatTime(e.At), e.What, e.Detail})
	}
	return s.show(view, rows)
}

// entryView is an entry for programs and for exports: no token, no alias, numbers masked.
type entryView struct {
	Kind              ledger.Kind         `json:"kind"`
	ID                string              `json:"id"`
	Merchant          string              `json:"merchant"`
	CreatedAt         time.Time           `json:"created_at"`
	State             ledger.State        `json:"state"`
	Status            ledger.Status       `json:"status,omitempty"`
	FinalAt           time.Time           `json:"final_at,omitzero"`
	Amount            string              `json:"amount,omitempty"`
	Currency          string              `json:"currency,omitempty"`
	Country           string              `json:"country"`
	Operator          string              `json:"operator"`
	Account           string              `json:"account"`
	Channel           string              `json:"channel,omitempty"`
	Correlator        string              `json:"client_correlator,omitempty"`
	ReferenceCode     string              `json:"reference_code,omitempty"`
	UpstreamKey       string              `json:"upstream_key"`
	OperatorReference string              `json:"operator_reference,omitempty"`
	PaymentID         string              `json:"transaction_id,omitempty"`
	MSISDN            string              `json:"msisdn,omitempty"`
	NotifyURL         string              `json:"notify_url,omitempty"`
	ResponseStatus    int                 `json:"answer_status,omitempty"`
	EverUnknown       bool                `json:"ever_unknown"`
	UserSMS           ledger.UserSMSState `json:"user_sms,omitempty"`
	Conflicts         int                 `json:"conflicts"`
}

func entryViewOf(e *ledger.Entry) entryView {
	view := entryView{
		Kind: e.Kind, ID: e.ID, Merchant: e.Merchant, CreatedAt: e.CreatedAt, State: e.State, Status: e.Status, FinalAt: e.FinalAt,
		Currency: e.Currency, Country: e.Country, Operator: e.Operator, Account: e.Account, Channel: e.Channel,
		Correlator: e.Correlator, ReferenceCode: e.ReferenceCode, UpstreamKey: e.UpstreamKey, OperatorReference: e.OperatorReference,
		PaymentID: e.TransactionID, MSISDN: msisdn.Mask(e.PurchaserMSISDN()), NotifyURL: e.NotifyURL, ResponseStatus: e.ResponseStatus,
		EverUnknown: e.EverUnknown, UserSMS: e.UserSMS, Conflicts: len(e.Conflicts),
	}
	if e.Currency != "" {
		view.Amount = money.Format(e.AmountMinor, e.Exponent)
	}
	return view
}

// entryRows is an entry's facts for people: those that it has.
func entryRows(v entryView) table {
	all := table{
		{"id", v.ID}, {"kind", string(v.Kind)}, {"merchant", v.Merchant}, {"state", string(v.State)}, {"status", string(v.Status)},
		{"amount", v.Amount}, {"currency", v.Currency}, {"country", v.Country}, {"operator", v.Operator}, {"account", v.Account},
		{"channel", v.Channel}, {"clientCorrelator", v.Correlator}, {"referenceCode", v.ReferenceCode}, {"upstream key", v.UpstreamKey},
		{"operator's reference", v.OperatorReference}, {"Transaction-id", v.PaymentID}, {"payer", v.MSISDN}, {"notified at", v.NotifyURL},
		{"user SMS", string(v.UserSMS)},
	}
	return slices.DeleteFunc(all, func(row []string) bool { return row[1] == "" })
}

// historyEvent is one thing that happened, or is to happen, to an entry.
type historyEvent struct {
	At     time.Time `json:"at,omitzero"`
	What   string    `json:"what"`
	Detail string    `json:"detail,omitempty"`
}

// entryHistory is an entry with all that is kept of its life.
type entryHistory struct {
	entryView
	Events []historyEvent `json:"events"`
}

// entryHistoryOf tells an entry's life in the order of time; what has no time stands at the end.
func entryHistoryOf(e *ledger.Entry) entryHistory {
	h := entryHistory{entryView: entryViewOf(e)}
	addEvent := func(at time.Time, what, detail string) {
		h.Events = append(h.Events, historyEvent{at, what, detail})
	}
	addEvent(e.CreatedAt, "created", "")
	if !e.SentAt.IsZero() {
		addEvent(e.SentAt, "first sent", "to "+e.Operator+" by account "+e.Account)
	}
	if e.ResponseStatus != 0 {
		addEvent(time.Time{}, "answered", strconv.Itoa(e.ResponseStatus))
	}
	for _, c := range e.Conflicts {
		addEvent(c.At, "conflict", fmt.Sprintf("%s said %s, kept and not applied: %s", c.Source, c.Status, c.Reason))
	}
	if e.Claim.Status != "" {
		addEvent(e.Claim.At, "claim", fmt.Sprintf("the operator's callback says %s; getStatus is asked at %s", e.Claim.Status, formatTime(e.Claim.CheckAt)))
	}
	if !e.FinalAt.IsZero() {
		addEvent(e.FinalAt, "final", string(e.Status))
	}
	if e.Manual.Outcome != "" {
		addEvent(e.Manual.At, "by hand", fmt.Sprintf("%s, says %s: %s", e.Manual.Outcome, e.Manual.Who, e.Manual.Reason))
	}
	h.Events = append(h.Events, notificationEvents(e)...)
	addEvent(e.UpdatedAt, "last written", fmt.Sprintf("version %d, %s", e.Version, e.State))
	if e.State == ledger.Reserved {
		addEvent(e.LeaseUntil, "lease ends", "")
	}
	for _, timer := range []historyEvent{{e.PollAt, "next lookup", ""}, {e.UserSMSAt, "next user SMS", ""}, {e.ExpireAt, "expires", ""}} {
		if !timer.At.IsZero() {
			h.Events = append(h.Events, timer)
		}
	}
	slices.SortStableFunc(h.Events, compareEventTimes)
	return h
}

// compareEventTimes orders events; one without a time comes last.
func compareEventTimes(a, b historyEvent) int {
	if a.At.IsZero() != b.At.IsZero() {
		return cmp.Compare(b.At.Unix(), a.At.Unix())
	}
	return a.At.Compare(b.At)
}

// failureText is why an attempt failed, with the HTTP status where one came.
func failureText(why string, code int) string {
	if code == 0 {
		return why
	}
	return fmt.Sprintf("%s %d", why, code)
}

// outboxDetail says where a notification stands.
func outboxDetail(n ledger.Notification) string {
	detail := fmt.Sprintf("%s, webhook-id %s, %s made", n.Status, n.ID, plural(n.Attempts, "attempt"))
	if n.LastReason != "" {
		detail += ", the last: " + failureText(n.LastReason, n.LastStatus)
	}
	switch {
	case n.DeadReason != "":
		detail += ", given up: " + n.DeadReason
	case n.Parked:
		detail += ", parked: the endpoint is disabled"
	case !n.NextAttemptAt.IsZero():
		detail += ", next at " + formatTime(n.NextAttemptAt)
	}
	return detail
}
