package delivery

import (
	"context"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operator"
)

// SendUserSMS makes one attempt to send the payer's SMS and returns the change of its entry (decision "user-sms").
// Its idempotency key is the order_id, so that the operator sends one SMS for any number of attempts.
func (c *Courier) SendUserSMS(ctx context.Context, e *ledger.Entry) EntryChange {
	notifier, capabilities, found := c.Operators.UserSMSSender(e.Operator)
	country, _ := market.ByAlpha2(e.Country)
	number, numberValid := parsePayerMSISDN(e.PayerMSISDN(), country)
	if !found || !numberValid {
		return func(e *ledger.Entry) bool { return e.RecordUserSMS(ledger.UserSMSFailed, time.Time{}) }
	}
	ctx, cancel := context.WithTimeout(ctx, c.SMSTimeout)
	defer cancel()
	result := notifier.SendUserSMS(ctx, operator.UserSMSCall{
		Call: operator.Call{
			Operator: e.Operator, AccountID: e.Account, UpstreamKey: e.UpstreamKey,
			MCO: country.MCO, Country: e.Country, MayRepeat: e.UserSMSAttempts > 0,
		},
		MSISDN: number.E164(),
		Text: capabilities.UserSMSTemplates.Render(e.Lang, operator.UserSMSValues{
			Amount: money.Format(e.AmountMinor, e.Exponent), Currency: e.Currency, Merchant: e.Merchant, OrderID: e.ID,
		}),
	})
	return c.userSMSChange(result, e.UserSMSAttempts)
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

// userSMSChange returns the change for the result of an attempt. A duplicate key on a retry means that an earlier
// attempt sent the SMS. An SMS that was not applied, or whose outcome is unknown, is retried under the same key until
// the schedule ends.
func (c *Courier) userSMSChange(result operator.Result, attemptsMade int) EntryChange {
	state, next := ledger.UserSMSDue, time.Time{}
	switch {
	case result.Outcome == operator.Succeeded, result.DuplicateKey && attemptsMade > 0:
		state = ledger.UserSMSSent
	case result.Outcome == operator.Refused:
		state = ledger.UserSMSFailed
	case attemptsMade < len(c.SMSRetryDelays):
		next = ledger.Timestamp(c.Now()).Add(c.SMSRetryDelays[attemptsMade])
	case result.Outcome == operator.NotApplied:
		state = ledger.UserSMSFailed
	default:
		state = ledger.UserSMSUnknown
	}
	return func(e *ledger.Entry) bool { return e.RecordUserSMS(state, next) }
}
