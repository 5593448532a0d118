package operatortest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// Certain are the rules of a platform for what a response may prove. A nil rule means that no response proves it.
type Certain struct {
	Succeeded, Refused, NotApplied func(status int, body string) bool
	// Found is a rule for a lookup, besides those of every platform.
	Found func(found operator.StatusResponse, status int, body string) bool
}

// Fuzz reads any response to the sample calls and their lookup. No result may be more certain than the response. The
// bodies are seeds with each status.
func (s Suite) Fuzz(f *testing.F, certain Certain, bodies ...string) {
	for _, body := range append(bodies, "", "{}", "[]", "null", "<html>") {
		for _, status := range []int{200, 201, 202, 302, 400, 401, 403, 404, 409, 422, 429, 500, 503} {
			f.Add(status, body)
		}
	}
	rules := map[operator.Outcome]func(int, string) bool{
		operator.Succeeded: certain.Succeeded, operator.Refused: certain.Refused,
		operator.NotApplied: certain.NotApplied,
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		driver := s.driver(t, s.secret("https://operator.example"), s.responding(status, body))
		for _, op := range s.operations("", false) {
			got := op.Call(t.Context(), driver)
			rule := rules[got.Outcome]
			if (got.Outcome == operator.Succeeded) != (got.Fault == nil) || got.Outcome != operator.Unknown &&
				(rule == nil || !rule(status, body)) {
				t.Errorf("%s: outcome %d by %d %q: %v", op.Name, got.Outcome, status, body, got.Fault)
			}
			hasPage := got.PayToken != "" && got.PaymentURL != "" && got.NotifToken != ""
			if isPage := op.Name == "web" && got.Outcome == operator.Succeeded; hasPage != isPage {
				t.Errorf("a page with the outcome %d by %d %q", got.Outcome, status, body)
			}
		}
		if s.Lookup == nil {
			return
		}
		found := driver.(operator.StatusLookup).LookUpPayment(t.Context(), s.statusCall())
		hasAmount := found.Amount != "" && (found.Currency != "" || s.Lookup.HasNoCurrency) || s.Lookup.Amount == ""
		isUnproven := found.Status != "" && (status/100 != 2 || found.OrderNotFound) ||
			found.Status == ledger.Successful && !hasAmount
		if (found.Status == "") != (found.Cause != nil) || isUnproven ||
			certain.Found != nil && !certain.Found(found, status, body) {
			t.Errorf("lookup %+v by %d %q", found, status, body)
		}
	})
}

// responding is a transport that makes the preparatory responses of a suite, and this one to any other request.
func (s Suite) responding(status int, body string) RoundTripper {
	return func(r *http.Request) (*http.Response, error) {
		if s.Preparatory != nil {
			if respond := s.Preparatory(r); respond != nil {
				recorder := httptest.NewRecorder()
				respond(recorder, r)
				return recorder.Result(), nil
			}
		}
		return &http.Response{
			StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// FuzzCallback reads any callback. A successful one names the payment, and its amount if the platform reports one.
func (s Suite) FuzzCallback(f *testing.F, bodies ...string) {
	for _, body := range append(bodies, "", "{}", "[]", "<html>") {
		f.Add(body)
	}
	reader := s.Driver(f, localAddress).(operator.PaymentCallbackReader)
	f.Fuzz(func(t *testing.T, body string) {
		report := reader.ReadPaymentCallback([]byte(body))
		isNamed := report.OrderID != "" || report.UpstreamKey != "" || report.NotifToken != ""
		hasAmount := report.Amount != "" || s.Callback.Amount == ""
		if report.Status == ledger.Successful && (!isNamed || !hasAmount) {
			t.Errorf("%q is a success: %+v", body, report)
		}
	})
}
