// Package reconcile finds out the status of a payment: it reads what an operator reports, looks the payment up,
// and translates both into a report for the ledger. The callback function, the sweep and gatewayctl all use it.
//
// It stores nothing. Its invariant: a lookup never reports a final status that the operator's own getStatus has not
// returned (decision "pay-claims").
package reconcile

import (
	"context"
	"errors"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

// The sources of a report, as conflicts name them.
const (
	SourceCallback = "callback"
	SourceStatus   = "getStatus"
)

// OperatorReport is an operator's report on a payment, from its callback or from its getStatus. Absent texts are "".
type OperatorReport struct {
	Status            ledger.Status
	Amount            string
	Currency          string
	OperatorReference string
	MSISDN            string
	StatusDescription string
}

// Reconciler looks payments up at their operators, and translates what operators report.
type Reconciler struct {
	Operators *operator.DriverDirectory
	// LookupTimeout bounds one lookup.
	LookupTimeout time.Duration
}

// LookupResult is the result of a lookup. Responded is false if the operator has no lookup, did not respond, or sent an
// unreadable response. NotFound means that the operator has no such order. StatusFinal means that Report.Status is
// final.
type LookupResult struct {
	Supported   bool
	Responded   bool
	NotFound    bool
	StatusFinal bool
	Report      OperatorReport
	Cause       error
}

// errUnknownStatus is the cause of a response with a status that is not in the table of operators' statuses.
var errUnknownStatus = errors.New("reconcile: getStatus returned an unknown status")

// LookUp looks a payment up at its operator, within LookupTimeout.
func (r *Reconciler) LookUp(ctx context.Context, e *ledger.Entry) LookupResult {
	reader, supported := r.Operators.StatusLookup(e.Operator)
	if !supported {
		return LookupResult{}
	}
	ctx, cancel := context.WithTimeout(ctx, r.LookupTimeout)
	defer cancel()
	country, _ := market.ByAlpha2(e.Country)
	response := reader.LookUpPayment(ctx, operator.StatusCall{
		Call: operator.Call{
			Operator: e.Operator, AccountID: e.Account, UpstreamKey: e.UpstreamKey,
			MCO: country.MCO, Country: e.Country,
		},
		Channel: e.Channel,
		Lang:    e.Lang,
	})
	result := LookupResult{Supported: true, NotFound: response.OrderNotFound, Cause: response.Cause}
	status, known := operator.ParsePaymentStatus(response.OperatorStatus)
	switch {
	case response.OrderNotFound:
		result.Responded = true
	case response.StatusKnown && known:
		result.Responded, result.StatusFinal = true, status.Final()
		result.Report = OperatorReport{
			status, response.Amount, response.Currency, response.OperatorReference, response.MSISDN,
			response.StatusDescription,
		}
	case response.StatusKnown:
		result.Cause = errUnknownStatus
	}
	return result
}

// NewStatusReport translates an operator's report for the ledger. An unreadable amount becomes -1, which is never equal
// to the payment's.
func (r *Reconciler) NewStatusReport(e *ledger.Entry, report OperatorReport, source string) ledger.StatusReport {
	_, _, userSMSSupported := r.Operators.UserSMSSender(e.Operator)
	statusReport := ledger.StatusReport{
		Status:            report.Status,
		Source:            source,
		Currency:          report.Currency,
		OperatorReference: report.OperatorReference,
		MSISDN:            report.MSISDN,
		UserSMS:           userSMSSupported,
	}
	if report.Status == ledger.Failed {
		statusReport.FailureReason = operator.ParseFailureReason(report.StatusDescription)
	}
	if report.Amount != "" {
		minor, err := money.Parse(report.Amount, e.Exponent)
		if err != nil {
			minor = -1
		}
		statusReport.HasAmount, statusReport.AmountMinor = true, minor
	}
	return statusReport
}
