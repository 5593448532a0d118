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

// UserSMS makes one try at the purchaser's SMS and returns how the entry changes by it (decision "user-sms"). It goes
// under the order_id, so that however often it is tried the operator sends one.
func (c *Courier) UserSMS(ctx context.Context, e *ledger.Entry) Change {
	notifier, able, found := c.Operators.UserNotifier(e.Operator)
	country, _ := market.ByAlpha2(e.Country)
	number, known := purchaser(e.PurchaserMSISDN(), country)
	if !found || !known {
		return func(e *ledger.Entry) bool { return e.MarkUserSMS(ledger.UserSMSFailed, time.Time{}) }
	}
	ctx, cancel := context.WithTimeout(ctx, c.SMSTimeout)
	defer cancel()
	result := notifier.UserSMS(ctx, operator.UserSMSCall{
		Call: operator.Call{
			Operator: e.Operator, Account: e.Account, Key: e.UpstreamKey, MCO: country.MCO, Country: e.Country,
			Resend: e.UserSMSTry > 0,
		},
		MSISDN: number.E164(),
		Text: able.UserSMS.Text(e.Lang, operator.UserSMSValues{
			Amount: money.Format(e.Minor, e.Exponent), Currency: e.Currency, Merchant: e.Merchant, OrderID: e.ID,
		}),
	})
	return c.smsOutcome(result, e.UserSMSTry)
}

// purchaser reads the number to tell: of the payment's country, or an international number of another one, which a
// customer abroad may have typed on the page.
func purchaser(text string, country market.Country) (msisdn.Number, bool) {
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

// smsOutcome is the change that a try at the purchaser's SMS makes. A duplicate on a further try was sent by an earlier
// one. What is released or unknown is tried again under the same key until the schedule ends.
func (c *Courier) smsOutcome(result operator.Result, tried int) Change {
	state, next := ledger.UserSMSDue, time.Time{}
	switch {
	case result.Outcome == operator.Done, result.Duplicate && tried > 0:
		state = ledger.UserSMSSent
	case result.Outcome == operator.Refused:
		state = ledger.UserSMSFailed
	case tried < len(c.SMSSchedule):
		next = ledger.Moment(c.Now()).Add(c.SMSSchedule[tried])
	case result.Outcome == operator.Released:
		state = ledger.UserSMSFailed
	default:
		state = ledger.UserSMSUnknown
	}
	return func(e *ledger.Entry) bool { return e.MarkUserSMS(state, next) }
}
