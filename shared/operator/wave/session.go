package wave

import (
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// session is a checkout session as Wave reports it.
type session struct {
	id        string
	reference string        // our client_reference
	status    ledger.Status // "" if it is unknown, or if the session lacks a required field
	amount    string
	currency  string
	launchURL string
	paymentID string // Wave's transaction_id, "" before the payment
}

// statuses maps payment_status and checkout_status. A payer whose payment failed may try again while the session is
// open.
var statuses = map[[2]string]ledger.Status{
	{"succeeded", "complete"}:  ledger.Successful,
	{"succeeded", "open"}:      ledger.Successful,
	{"succeeded", "expired"}:   ledger.Successful,
	{"processing", "open"}:     ledger.Pending,
	{"processing", "complete"}: ledger.Pending,
	{"processing", "expired"}:  ledger.Expired,
	{"cancelled", "open"}:      ledger.Pending,
	{"cancelled", "complete"}:  ledger.Cancelled,
	{"cancelled", "expired"}:   ledger.Cancelled,
}

// readSession reads a session below a path, which is "" or ends with a point. The reader's faults do not matter.
func readSession(doc *strictjson.Reader, path string) session {
	s := session{
		id:        upstream.Text(doc, path+"id"),
		reference: upstream.Text(doc, path+"client_reference"),
		amount:    upstream.TextOrNumber(doc, path+"amount"),
		currency:  upstream.Text(doc, path+"currency"),
		launchURL: upstream.URL(doc, path+"wave_launch_url"),
		paymentID: upstream.Text(doc, path+"transaction_id"),
	}
	if s.id != "" && s.reference != "" && s.amount != "" && s.currency != "" {
		payment, checkout := upstream.Text(doc, path+"payment_status"), upstream.Text(doc, path+"checkout_status")
		s.status = statuses[[2]string{payment, checkout}]
	}
	return s
}

// isOpenFor reports whether the session can be paid, and is for the payment of a request: its reference, currency and
// amount.
func (s session) isOpenFor(request sessionRequest) bool {
	exponent, _ := market.CurrencyExponent(request.Currency)
	want, wantErr := money.Parse(request.Amount, exponent)
	got, err := money.Parse(s.amount, exponent)
	isSame := s.reference == request.Reference && s.currency == request.Currency && got == want
	return isSame && wantErr == nil && err == nil && s.status == ledger.Pending && s.launchURL != ""
}

// page is the response with an open session. Wave has one token of a session: its id.
func (s session) page() operator.PayResponse {
	return operator.PayResponse{
		Result:   operator.Result{Outcome: operator.Succeeded},
		PayToken: s.id, PaymentURL: s.launchURL, NotifToken: s.notifToken(),
	}
}

// report is what the session reports on its payment.
func (s session) report() operator.StatusReport {
	return operator.StatusReport{
		Status: s.status, Amount: s.amount, Currency: s.currency, OperatorReference: s.paymentID,
	}
}

// notifToken derives the notif_token of a session, because Wave has none: the same in the response and in a callback.
func (s session) notifToken() string {
	return upstream.NotifToken(s.reference, s.id)
}

// precedence is the order in which a session of a payment decides over its others. A paid one decides. One with an
// unknown status prevents a final status, and so does an open one.
var precedence = []ledger.Status{ledger.Successful, "", ledger.Pending, ledger.Cancelled, ledger.Expired}

// decidingSession returns the session that decides the payment's status. sessions is not empty.
func decidingSession(sessions []session) session {
	for _, status := range precedence {
		for _, s := range sessions {
			if s.status == status {
				return s
			}
		}
	}
	return session{}
}
