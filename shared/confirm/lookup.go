// Package confirm finds out the status of a payment: it reads what an operator reports, looks the payment up,
// and translates both into a report for the ledger. The callback function, the sweep and gatewayctl all use it.
//
// Its invariant: a lookup never reports a final status that the operator's own getStatus has not
// returned (decision "pay-claims").
package confirm

import (
	"context"
	"errors"
	"time"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/timeline"
)

// Confirmer looks payments up at their operators, and applies what operators report.
type Confirmer struct {
	Operators *operator.DriverDirectory
	// LookupTimeout bounds one lookup.
	LookupTimeout time.Duration
	// LookupRates keep each account's lookups within the rate of its platform's row; nil for no limit.
	LookupRates *limit.RateLimiter
	// DailyAmounts follow the changes that Store stores.
	DailyAmounts *dailyamount.Counter
}

// LookupResult is the result of a lookup. Responded is false if the operator has no lookup, did not respond, or sent an
// unreadable response. NotFound means that the operator has no such order. StatusFinal means that Report.Status is
// final.
type LookupResult struct {
	Supported   bool
	Responded   bool
	NotFound    bool
	StatusFinal bool
	Report      operator.StatusReport
	Cause       error
	// LeasedAt is when the sweep leased the lookup; zero for another caller's.
	LeasedAt time.Time
}

// TimelineEvent returns the lookup as the timeline of its entry has it. at is when a lookup without a lease was made.
func (r LookupResult) TimelineEvent(at time.Time) timeline.Event {
	e := timeline.Event{Kind: timeline.Lookup, At: at, Outcome: timeline.NoResponse, Code: r.Report.Code}
	if !r.LeasedAt.IsZero() {
		e.At = r.LeasedAt
	}
	rejected := &fault.Fault{}
	switch {
	case r.Report.Status != "":
		e.Outcome = ledger.ReportOutcome(r.Report.Status)
	case r.NotFound:
		e.Outcome = timeline.NotFound
	case errors.Is(r.Cause, operator.ErrUnknownStatus):
		e.Outcome = timeline.UnknownStatus
	case !r.Supported, errors.Is(r.Cause, ErrLookupRate), errors.Is(r.Cause, errPatience):
		e.Outcome = timeline.NotMade
	case errors.As(r.Cause, &rejected) && rejected.Kind == fault.IntegrationRejected:
		e.Outcome = timeline.Rejected
	}
	return e
}

// Failed is true if the operator has a lookup and did not respond to it.
func (r LookupResult) Failed() bool { return r.Supported && !r.Responded }

// LookUp looks a payment up at its operator, within LookupTimeout. The caller has taken it out of the account's rate.
func (c *Confirmer) LookUp(ctx context.Context, e *ledger.Entry) LookupResult {
	reader, supported := c.Operators.StatusLookup(e)
	if !supported {
		return LookupResult{}
	}
	ctx, cancel := context.WithTimeout(ctx, c.LookupTimeout)
	defer cancel()
	response := reader.LookUpPayment(ctx, operator.StatusCall{
		Call: operator.NewCall(e), Channel: e.Request.Channel, Lang: e.Request.Lang, Amount: e.Amount.AsSent,
		Currency: e.Amount.Currency,
	})
	return LookupResult{
		Supported: true, NotFound: response.OrderNotFound, Responded: response.OrderNotFound || response.Status != "",
		StatusFinal: response.Status.Final(), Report: response.StatusReport, Cause: response.Cause,
	}
}

// NewStatusReport translates an operator's report for the ledger. An unreadable amount becomes -1, which is never equal
// to the payment's.
func (c *Confirmer) NewStatusReport(e *ledger.Entry, report operator.StatusReport, source string) ledger.StatusReport {
	_, _, userSMSSupported := c.Operators.UserSMSSender(e)
	statusReport := ledger.StatusReport{
		Status:            report.Status,
		Source:            source,
		Currency:          report.Currency,
		OperatorReference: report.OperatorReference,
		MSISDN:            report.MSISDN,
		UserSMS:           userSMSSupported,
	}
	if report.Status == ledger.Failed {
		statusReport.FailureReason = report.Reason
	}
	if report.Amount != "" {
		minor, err := money.Parse(report.Amount, e.Amount.Exponent)
		if err != nil {
			minor = -1
		}
		statusReport.HasAmount, statusReport.AmountMinor = true, minor
	}
	return statusReport
}
