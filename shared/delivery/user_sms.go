package delivery

import (
	"context"
	"strings"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operator"
)

// SendUserSMS makes one attempt to send the payer's SMS under a lease and returns the change of its entry (decision
// "user-sms"). Its idempotency key is the order_id, so that the operator sends one SMS for any number of attempts. Once
// an attempt may have reached the operator, nothing is sent after the operator's resend window: the SMS is unknown.
func (c *Courier) SendUserSMS(ctx context.Context, e *ledger.Entry, claim ledger.UserSMSClaim) EntryChange {
	record := func(outcome ledger.UserSMSOutcome) EntryChange {
		return func(e *ledger.Entry) ledger.Transition {
			return ledger.RecordUserSMS.If(e.UserSMS.Record(claim, outcome))
		}
	}
	notifier, capabilities, found := c.Operators.UserSMSSender(e)
	country, _ := market.ByAlpha2(e.Route.Country)
	number, numberValid := parsePayerMSISDN(e.PayerMSISDN(), country)
	if !found || !numberValid {
		return record(ledger.UserSMSOutcome{State: ledger.UserSMSFailed})
	}
	if claim.MayHaveBeenSent && c.Now().Sub(e.FinalAt) >= capabilities.SafeResendWindow() {
		return record(ledger.UserSMSOutcome{State: ledger.UserSMSUnknown})
	}
	ctx, cancel := context.WithTimeout(ctx, c.SMSTimeout)
	defer cancel()
	call := operator.NewCall(e)
	call.MayRepeat = claim.MayHaveBeenSent
	result := notifier.SendUserSMS(ctx, operator.UserSMSCall{
		Call:   call,
		MSISDN: number.E164(),
		Text: capabilities.UserSMSTemplates.Render(e.Request.Lang, operator.UserSMSValues{
			Amount: money.Format(e.Amount.Minor, e.Amount.Exponent), Currency: e.Amount.Currency,
			Merchant: e.Merchant.Name, OrderID: e.ID,
		}),
	})
	return record(c.userSMSOutcome(result, claim))
}

// parsePayerMSISDN parses the payer's number: one of the payment's country, or an international number of
// another country, which a payer from abroad may have entered on the payment page.
func parsePayerMSISDN(text string, country market.Country) (msisdn.Number, bool) {
	countries := []market.Country{country}
	if strings.HasPrefix(text, "+") {
		countries = append(countries, market.All()...)
	}
	for _, c := range countries {
		if number, err := msisdn.Parse(text, c); err == nil {
			return number, true
		}
	}
	return msisdn.Number{}, false
}

// userSMSOutcome returns the outcome of an attempt. A duplicate key means that an earlier attempt sent the SMS, if one
// may have reached the operator. An SMS that was not applied, or whose outcome is unknown, is retried under the same
// key until the schedule ends. After an attempt without a lease it may have been sent, also if the operator did not
// apply it: the response proves nothing about an attempt before it.
func (c *Courier) userSMSOutcome(result operator.Result, claim ledger.UserSMSClaim) ledger.UserSMSOutcome {
	maybeSent := result.Outcome == operator.Unknown && !result.DuplicateKey || claim.Unleased
	switch {
	case result.Outcome == operator.Succeeded, result.DuplicateKey && claim.MayHaveBeenSent:
		return ledger.UserSMSOutcome{State: ledger.UserSMSSent}
	case result.Outcome == operator.Refused:
		return ledger.UserSMSOutcome{State: ledger.UserSMSFailed}
	case claim.Attempts < len(c.SMSRetryDelays):
		next := ledger.Timestamp(c.Now()).Add(c.SMSRetryDelays[claim.Attempts])
		return ledger.UserSMSOutcome{State: ledger.UserSMSDue, NextAttemptAt: next, MaybeSent: maybeSent}
	case result.Outcome == operator.NotApplied && !claim.MayHaveBeenSent && !claim.Unleased:
		return ledger.UserSMSOutcome{State: ledger.UserSMSFailed}
	default:
		return ledger.UserSMSOutcome{State: ledger.UserSMSUnknown, MaybeSent: maybeSent}
	}
}
