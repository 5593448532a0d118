// Package transactions has gatewayctl's commands for transactions: they show, export and resolve them.
package transactions

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/search"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
)

// ShowPayment is the command payment show.
type ShowPayment struct {
	OrderID string `arg:"" help:"The order_id."`
}

// Run shows the payment.
func (c *ShowPayment) Run(s *session.Session) error {
	return showEntry(s, ledger.Payment, c.OrderID, c.OrderID)
}

// transactionArgument names a charge or an SMS by its id, or by its merchant's own key.
type transactionArgument struct {
	ID         string `arg:"" optional:"" help:"The id."`
	Merchant   string `placeholder:"NAME" help:"Instead of the id: the merchant's name or id."`
	Correlator string `placeholder:"TEXT" help:"With --merchant: the clientCorrelator."`
}

// show shows the entry. reference is the merchant's own key of a charge that has no clientCorrelator.
func (c transactionArgument) show(s *session.Session, kind ledger.Kind, reference string) error {
	id, typed := c.ID, c.ID
	if id == "" {
		if c.Merchant == "" || c.Correlator == "" && reference == "" {
			return output.UsageError(`expected "<id>", or --merchant with --correlator (a charge: or --reference)`)
		}
		p, err := s.FindMerchant(c.Merchant)
		if err != nil {
			return err
		}
		typed = cmp.Or(c.Correlator, reference) + " of " + p.Name
		id = ledger.SMSID(p.ID, c.Correlator)
		if kind == ledger.Charge {
			id = ledger.ChargeID(p.ID, c.Correlator, reference)
		}
	}
	return showEntry(s, kind, typed, id)
}

// ShowCharge is the command charge show.
type ShowCharge struct {
	transactionArgument
	Reference string `placeholder:"TEXT" help:"With --merchant: the referenceCode, if there is no clientCorrelator."`
}

// Run shows the charge.
func (c *ShowCharge) Run(s *session.Session) error { return c.show(s, ledger.Charge, c.Reference) }

// ShowSMS is the command sms show.
type ShowSMS struct{ transactionArgument }

// Run shows the SMS.
func (c *ShowSMS) Run(s *session.Session) error { return c.show(s, ledger.SMS, "") }

// showEntry shows one entry: its facts, and its events in the order of time. An error names it as it was typed.
func showEntry(s *session.Session, kind ledger.Kind, typed, id string) error {
	e, err := entries.FindTyped(s, typed, id, kind)
	if err != nil {
		return err
	}
	return entries.ShowHistory(s, e)
}

// List is the command list.
type List struct {
	session.MerchantArgument
	Day session.UTCDay `placeholder:"DAY" help:"The UTC day of creation, such as 2026-03-01; today if not given."`
	session.DayRange
	kindFlag
	session.WatchFlag
	Status string `placeholder:"STATUS" help:"Only this status, such as pending; or this state, such as unknown."`
}

// Validate refuses an unknown status and a day beside a range.
func (c *List) Validate() error {
	if c.Status != "" && !slices.Contains(statusesAndStates, c.Status) {
		return fmt.Errorf("--status %q is not one of %s", c.Status, output.JoinComma(statusesAndStates))
	}
	if !c.Day.IsZero() && !(c.From.IsZero() && c.To.IsZero()) {
		return errors.New("--day excludes --from and --to: use the day or the range")
	}
	return nil
}

// Run lists the transactions in the order of creation. For very many transactions use export.
func (c *List) Run(s *session.Session) error {
	if c.From.IsZero() && c.To.IsZero() {
		if c.Day.IsZero() {
			c.Day.Time = s.Now().UTC().Truncate(session.Day)
		}
		c.From, c.To = c.Day, c.Day
	}
	var views []entries.View
	for e, err := range entries.InRange(s, c.Name, c.Times(), nil) {
		if err != nil {
			return err
		}
		if c.matches(e) && (c.Status == "" || c.Status == string(e.Status) || c.Status == string(e.State)) {
			views = append(views, entries.ViewOf(e))
		}
	}
	return session.ShowList(s, views)
}

type kindFlag struct {
	Kind string `enum:"all,charge,pay,sms" default:"all" help:"all, charge, pay or sms."`
}

func (c kindFlag) matches(e *ledger.Entry) bool { return c.Kind == "all" || c.Kind == string(e.Kind) }

// statusesAndStates are the values of --status: the statuses of payments, those of SMS, and the states.
var statusesAndStates = append(search.Statuses(), search.States()...)
