// Package settlement finds out what became of a payment: it reads what an operator claims or answers, asks getStatus,
// and says what the ledger is to make of it. The callback function and the sweep settle through it alike.
//
// It writes nothing itself. Its invariant: a claim becomes final only after the operator's own getStatus has said the
// same, wherever the operator offers one (decision "pay-claims").
package reconcile

import (
	"context"
	"errors"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

// The sources of a report, as conflicts name them.
const (
	SourceCallback = "callback"
	SourceStatus   = "getStatus"
)

// OperatorReport is what an operator said about a payment, in its callback or in its answer to getStatus. Absent texts are "".
type OperatorReport struct {
	Status            ledger.Status
	Amount            string
	Currency          string
	OperatorReference string
	MSISDN            string
}

// Reconciler asks operators.
type Reconciler struct {
	Operators *operator.DriverDirectory
	// DailyAmounts keeps merchants' daily amounts in step; it is asked only about entries that count against one.
	DailyAmounts limit.AmountLimiter
	// LookupTimeout bounds one lookup.
	LookupTimeout time.Duration
}

// LookupResult is what getStatus told. Answered is false where the operator offers no lookup, did not answer, or answered
// what cannot be read; NotFound where it answered that there is no such order. Final tells that Report.Status is final.
type LookupResult struct {
	Supported   bool
	Responded   bool
	NotFound    bool
	StatusFinal bool
	Report      OperatorReport
	Cause       error
}

// errUnknownStatus says that an answer to getStatus has a status that is none of the known words.
var errUnknownStatus = errors.New("settlement: getStatus answered with an unknown status")

// LookUp looks a payment up at its operator, within the desk's timeout.
func (d *Reconciler) LookUp(ctx context.Context, e *ledger.Entry) LookupResult {
	reader, supported := d.Operators.StatusLookup(e.Operator)
	if !supported {
		return LookupResult{}
	}
	ctx, cancel := context.WithTimeout(ctx, d.LookupTimeout)
	defer cancel()
	country, _ := market.ByAlpha2(e.Country)
	response := reader.LookUpPayment(ctx, operator.StatusCall{
		Call: operator.Call{
			Operator: e.Operator, AccountID: e.Account, IdempotencyKey: e.UpstreamKey, MCO: country.MCO, Country: e.Country,
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
		result.Report = OperatorReport{status, response.Amount, response.Currency, response.OperatorReference, response.MSISDN}
	case response.StatusKnown:
		result.Cause = errUnknownStatus
	}
	return result
}

// NewStatusReport is a report as the ledger takes it. An amount that cannot be read is one that is not ours.
func (d *Reconciler) NewStatusReport(e *ledger.Entry, r OperatorReport, source string) ledger.StatusReport {
	_, _, userSMSSupported := d.Operators.UserSMSSender(e.Operator)
	resolution := ledger.StatusReport{
		Status:            r.Status,
		Source:            source,
		Currency:          r.Currency,
		OperatorReference: r.OperatorReference,
		MSISDN:            r.MSISDN,
		UserSMS:           userSMSSupported,
	}
	if r.Amount != "" {
		minor, err := money.Parse(r.Amount, e.Exponent)
		if err != nil {
			minor = -1
		}
		resolution.HasAmount, resolution.AmountMinor = true, minor
	}
	return resolution
}
