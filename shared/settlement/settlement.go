// Package settlement finds out what became of a payment: it reads what an operator claims or answers, asks getStatus,
// and says what the ledger is to make of it. The callback function and the sweep settle through it alike.
//
// It writes nothing itself. Its invariant: a claim becomes final only after the operator's own getStatus has said the
// same, wherever the operator offers one (decision "pay-claims").
package settlement

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

// Report is what an operator said about a payment, in its callback or in its answer to getStatus. Absent texts are "".
type Report struct {
	Status            ledger.Status
	Amount            string
	Currency          string
	OperatorReference string
	MSISDN            string
}

// Desk asks operators.
type Desk struct {
	Operators *operator.Directory
	// Amounts keeps merchants' daily amounts in step; it is asked only about entries that count against one.
	Amounts limit.Counter
	// Timeout bounds one lookup.
	Timeout time.Duration
}

// Answer is what getStatus told. Answered is false where the operator offers no lookup, did not answer, or answered
// what cannot be read; NotFound where it answered that there is no such order. Final tells that Report.Status is final.
type Answer struct {
	Offered  bool
	Answered bool
	NotFound bool
	Final    bool
	Report   Report
	Cause    error
}

// errWord says that an answer to getStatus has a status that is none of the known words.
var errWord = errors.New("settlement: getStatus answered with an unknown status")

// Ask looks a payment up at its operator, within the desk's timeout.
func (d *Desk) Ask(ctx context.Context, e *ledger.Entry) Answer {
	reader, offered := d.Operators.StatusReader(e.Operator)
	if !offered {
		return Answer{}
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	country, _ := market.ByAlpha2(e.Country)
	told := reader.PaymentStatus(ctx, operator.StatusCall{
		Call: operator.Call{
			Operator: e.Operator, Account: e.Account, Key: e.UpstreamKey, MCO: country.MCO, Country: e.Country,
		},
		Channel: e.Channel,
		Lang:    e.Lang,
	})
	answer := Answer{Offered: true, NotFound: told.NotFound, Cause: told.Cause}
	status, known := operator.StatusWord(told.Status)
	switch {
	case told.NotFound:
		answer.Answered = true
	case told.Known && known:
		answer.Answered, answer.Final = true, status.Final()
		answer.Report = Report{status, told.Amount, told.Currency, told.OperatorReference, told.MSISDN}
	case told.Known:
		answer.Cause = errWord
	}
	return answer
}

// Resolution is a report as the ledger takes it. An amount that cannot be read is one that is not ours.
func (d *Desk) Resolution(e *ledger.Entry, r Report, source string) ledger.Resolution {
	_, _, owed := d.Operators.UserNotifier(e.Operator)
	resolution := ledger.Resolution{
		Status:            r.Status,
		Source:            source,
		Currency:          r.Currency,
		OperatorReference: r.OperatorReference,
		MSISDN:            r.MSISDN,
		UserSMS:           owed,
	}
	if r.Amount != "" {
		minor, err := money.Parse(r.Amount, e.Exponent)
		if err != nil {
			minor = -1
		}
		resolution.HasAmount, resolution.Minor = true, minor
	}
	return resolution
}
