package operatortest

import (
	"cmp"
	"errors"
	"net/http"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

func (s Suite) currency() string {
	country, _ := market.ByAlpha2(rowOf(s.Platform).Reach[0].Countries[0])
	return country.Currency
}

func (s Suite) lookupResponse(word string) Responder {
	return Respond(cmp.Or(s.LookupStatus, http.StatusOK), s.Lookup.body(word, s.Lookup.Amount, s.currency()))
}

// lookupReports: each status word, an unknown one, another amount, another currency, and a payment that is not found.
func (s Suite) lookupReports(t *testing.T) {
	if s.Lookup == nil {
		t.Skip("the platform has no lookup")
	}
	look := func(responder Responder) operator.StatusResponse {
		return s.LookUp(t, s.Stub(t, responder), s.statusCall())
	}
	s.checkReports(t, *s.Lookup, func(body string) operator.StatusReport {
		found := look(Respond(cmp.Or(s.LookupStatus, http.StatusOK), body))
		if (found.Status == "") != (found.Cause != nil) || found.OrderNotFound {
			t.Errorf("status %q, not found %v, %v", found.Status, found.OrderNotFound, found.Cause)
		}
		return found.StatusReport
	})
	if found := look(s.lookupResponse("Exploded")); !errors.Is(found.Cause, operator.ErrUnknownStatus) {
		t.Errorf("an unknown status: %v", found.Cause)
	}
	if s.NotFoundResponse == nil {
		return
	}
	means := rowOf(s.Platform).NeverSentAfter > 0 || s.DriverData == ""
	if found := look(s.NotFoundResponse); found.OrderNotFound != means || found.Status != "" || found.Cause == nil {
		t.Errorf("too early: not found %v, want %v; status %q", found.OrderNotFound, means, found.Status)
	}
	check := s.statusCall()
	check.DriverData = check.OrderID
	if found := s.LookUp(t, s.Stub(t, s.NotFoundResponse), check); !found.OrderNotFound {
		t.Errorf("the check of an account: %+v", found)
	}
}

// callbackReports: a callback needs nothing of an earlier call, so it may come before the response. It names the
// payment, or comes to an address that does.
func (s Suite) callbackReports(t *testing.T) {
	if s.Callback == nil {
		t.Skip("the platform has no callbacks of payments that a driver reads")
	}
	reader, ok := s.Driver(t, localAddress).(operator.PaymentCallbackReader)
	if !ok {
		t.Fatal("the driver reads no callbacks of payments")
	}
	s.checkReports(t, *s.Callback, func(body string) operator.StatusReport {
		return reader.ReadPaymentCallback([]byte(body)).StatusReport
	})
	call := s.statusCall()
	paid := s.Callback.body(s.Callback.successWord(), s.Callback.Amount, s.currency())
	report := reader.ReadPaymentCallback([]byte(paid))
	if rowOf(s.Platform).StaticCallbacks && report.OrderID != call.OrderID {
		t.Errorf("a static callback names the order %q", report.OrderID)
	}
	for _, body := range []string{"", "<html>", "[]", "null", "{}{}"} {
		if report := reader.ReadPaymentCallback([]byte(body)); report != (operator.CallbackReport{}) {
			t.Errorf("%q: %+v", body, report)
		}
	}
}

// checkReports checks the reports of each status, and that another amount or currency is reported as such or proves
// nothing: it never equals the payment's.
func (s Suite) checkReports(t *testing.T, r Reports, read func(body string) operator.StatusReport) {
	t.Helper()
	call, currency := s.statusCall(), s.currency()
	exponent, _ := market.CurrencyExponent(currency)
	want, _ := money.Parse(call.Amount, exponent)
	for word, status := range r.Statuses {
		found := read(r.body(word, r.Amount, currency))
		if found.Status != status {
			t.Errorf("%s is %q, want %q", word, found.Status, status)
		}
		got, err := money.Parse(found.Amount, exponent)
		if found.Status == ledger.Successful && r.Amount != "" && (err != nil || got != want) {
			t.Errorf("%s has the amount %q", word, found.Amount)
		}
	}
	if found := read(r.body("Exploded", r.Amount, currency)); found.Status != "" {
		t.Errorf("an unknown status is %q", found.Status)
	}
	if r.Amount != "" {
		found := read(r.body(r.successWord(), r.OtherAmount, currency))
		if got, err := money.Parse(found.Amount, exponent); found.Status != "" && err == nil && got == want {
			t.Errorf("another amount is reported as %q", found.Amount)
		}
	}
	if !r.HasNoCurrency {
		if found := read(r.body(r.successWord(), r.Amount, "USD")); found.Status != "" && found.Currency != "USD" {
			t.Errorf("another currency is reported as %q", found.Currency)
		}
	}
}
