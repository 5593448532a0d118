package operatortest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/timeline"
)

// Proof is what the responses to a call prove: its outcome, and what else the result has then.
type Proof struct {
	Outcome  operator.Outcome
	Kind     fault.Kind           // of the fault, unless the call succeeded
	Reason   ledger.FailureReason // of a refusal
	Part     string               // of the merchant's request
	Known    bool                 // the platform knows the key
	Unmapped bool                 // the platform refuses by a code that the driver does not know
	Sends    int                  // of the call, without exchanges of tokens
}

// Proofs of the responses to a call that is sent once.
var (
	Succeeded = Proof{Outcome: operator.Succeeded, Sends: 1}
	// Unknown is the lack of a proof, and KnownKey the same by a platform that knows the key.
	Unknown  = Proof{Outcome: operator.Unknown, Kind: fault.OutcomeUnknown, Sends: 1}
	KnownKey = Proof{Outcome: operator.Unknown, Kind: fault.OutcomeUnknown, Known: true, Sends: 1}
	// OurFault is a call that was not applied because of our request or account. UnmappedCode is one for a reason that
	// the driver does not know, and Unavailable one because of the platform.
	OurFault     = Proof{Outcome: operator.NotApplied, Kind: fault.IntegrationRejected, Sends: 1}
	UnmappedCode = Proof{Outcome: operator.NotApplied, Kind: fault.IntegrationRejected, Unmapped: true, Sends: 1}
	Unavailable  = Proof{Outcome: operator.NotApplied, Kind: fault.OperatorUnavailable, Sends: 1}
)

// Refused is a final refusal.
func Refused(reason ledger.FailureReason) Proof {
	return Proof{Outcome: operator.Refused, Kind: fault.OperatorError, Reason: reason, Sends: 1}
}

// InvalidPart is a call that was not applied because of a part of the merchant's request.
func InvalidPart(part string) Proof {
	return Proof{Outcome: operator.NotApplied, Kind: fault.InvalidPart, Part: part, Sends: 1}
}

// Sent is the proof of a call that is sent that often.
func (p Proof) Sent(times int) Proof {
	p.Sends = times
	return p
}

// Outcomes are responses to a call by what they prove, with a name each.
type Outcomes map[Proof]map[string]Responder

// CheckPayments checks what responses to a payment prove. A page comes with a success, and only with it, as
// data of the driver.
func (s Suite) CheckPayments(t *testing.T, call operator.PayCall, cases Outcomes) {
	t.Helper()
	s.CheckCalls(t, func(ctx context.Context, d operator.Driver) operator.PayResponse {
		response := operator.Pay(ctx, d, call)
		hasPage := response.PayToken != "" && response.PaymentURL != "" && response.NotifToken != ""
		isPage := call.Channel == "web" && response.Outcome == operator.Succeeded
		if hasPage != isPage || !isPage && response.DriverData != call.DriverData {
			t.Errorf("outcome %d with the response %+v", response.Outcome, response)
		}
		return response
	}, cases)
}

// CheckCalls checks what responses to a call prove.
func (s Suite) CheckCalls(
	t *testing.T, call func(context.Context, operator.Driver) operator.PayResponse, cases Outcomes,
) {
	t.Helper()
	for want, responses := range cases {
		for name, respond := range responses {
			t.Run(name, func(t *testing.T) {
				stub := s.Stub(t, respond)
				got := call(t.Context(), s.Driver(t, stub.URL))
				s.CheckProof(t, got.Result, want)
				if sent := len(stub.Requests()); sent != want.Sends {
					t.Errorf("the call was sent %d times, want %d", sent, want.Sends)
				}
				if want.Sends > 0 && got.HTTPStatus != stub.lastStatus() {
					t.Errorf("HTTP status %d, want that of the response, %d", got.HTTPStatus, stub.lastStatus())
				}
			})
		}
	}
}

// CheckProof checks a result, whose fault has no private text.
func (s Suite) CheckProof(t testing.TB, got operator.Result, want Proof) {
	t.Helper()
	if got.Outcome != want.Outcome || (got.Fault == nil) != (want.Outcome == operator.Succeeded) {
		t.Fatalf("outcome %d, want %d: %v", got.Outcome, want.Outcome, got.Fault)
	}
	if got.DuplicateKey != want.Known {
		t.Errorf("a known key: %v, want %v: %v", got.DuplicateKey, want.Known, got.Fault)
	}
	if got.Code != "" && (got.Fault == nil || !isOwnCode(got.Code)) {
		t.Errorf("outcome %d has the code %q", got.Outcome, got.Code)
	}
	if got.Fault == nil {
		return
	}
	if got.Fault.Kind != want.Kind || got.Fault.Part != want.Part {
		t.Errorf("fault %v of kind %v, part %q; want %v, %q",
			got.Fault, got.Fault.Kind, got.Fault.Part, want.Kind, want.Part)
	}
	if reason := operator.RefusalReason(got.Fault); reason != want.Reason {
		t.Errorf("refused for %q, want %q", reason, want.Reason)
	}
	if unmapped := errors.Is(got.Fault, operator.ErrUnmappedCode); unmapped != want.Unmapped {
		t.Errorf("an unmapped code: %v, want %v: %v", unmapped, want.Unmapped, got.Fault)
	}
	s.CheckPrivate(t, got.Fault)
}

// CheckPrivate checks that an error, which may be nil, contains no private text.
func (s Suite) CheckPrivate(t testing.TB, err error) {
	t.Helper()
	private := append([]string{"very-private", SampleOTP, sampleDigits}, s.Secrets...)
	isIn := func(text string) bool { return err != nil && strings.Contains(err.Error(), text) }
	if i := slices.IndexFunc(private, isIn); i >= 0 {
		t.Errorf("%q is in the text %q", private[i], err)
	}
}

// CheckUnsent checks payments that are refused before any request, by what their result is. Each case is an edit of the
// call.
func (s Suite) CheckUnsent(t *testing.T, call operator.PayCall, cases map[Proof]map[string]func(*operator.PayCall)) {
	t.Helper()
	stub := NewStubOperator(t)
	driver := s.Driver(t, stub.URL)
	for want, edits := range cases {
		for name, edit := range edits {
			t.Run(name, func(t *testing.T) {
				edited := call
				edit(&edited)
				s.CheckProof(t, operator.Pay(t.Context(), driver, edited).Result, want)
				if preparer, ok := driver.(operator.Preparer); ok {
					_, result := preparer.Prepare(t.Context(), edited)
					s.CheckProof(t, result, want)
				}
				if sent := len(stub.Requests()); sent != 0 {
					t.Errorf("%d requests were sent", sent)
				}
			})
		}
	}
}

// Lookups are responses to a lookup by its result, with a name each.
type Lookups map[operator.StatusResponse]map[string]Responder

// Results of lookups without a status. The response is not one on the payment, has a status that the driver does not
// know, or reports that the payment does not exist.
var (
	Unread        = operator.StatusResponse{}
	UnknownStatus = operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	OrderNotFound = operator.StatusResponse{OrderNotFound: true}
)

// WithStatus is the result of a lookup with a status.
func WithStatus(report operator.StatusReport) operator.StatusResponse {
	return operator.StatusResponse{StatusReport: report}
}

// CheckLookups checks the results of a lookup.
func (s Suite) CheckLookups(t *testing.T, call operator.StatusCall, cases Lookups) {
	t.Helper()
	for want, responses := range cases {
		for name, respond := range responses {
			t.Run(name, func(t *testing.T) {
				got := s.LookUp(t, s.Stub(t, respond), call)
				isUnknown := errors.Is(got.Cause, operator.ErrUnknownStatus)
				if (got.Cause == nil) != (got.Status != "") || isUnknown != (want.Cause != nil) {
					t.Errorf("status %q with the cause %v", got.Status, got.Cause)
				}
				s.CheckPrivate(t, got.Cause)
				got.Cause = want.Cause
				checkCode(t, want.StatusReport, &got.StatusReport)
				if diff := cmp.Diff(want.StatusReport, got.StatusReport); diff != "" || got != want {
					t.Errorf("not found: %v, report (-want +got):\n%s", got.OrderNotFound, diff)
				}
			})
		}
	}
}

// checkCode checks that only a failure has a code, in the form of a driver's own table, and removes it from a report
// whose wanted one has none.
func checkCode(t *testing.T, want operator.StatusReport, got *operator.StatusReport) {
	t.Helper()
	isFailure := got.Status.Final() && got.Status != ledger.Successful
	if got.Code != "" && (!isFailure || !isOwnCode(got.Code)) {
		t.Errorf("the status %q has the code %q", got.Status, got.Code)
	}
	if want.Code == "" {
		got.Code = ""
	}
}

// isOwnCode reports whether a code has the form of a driver's own table, or is timeline.UnknownCode.
func isOwnCode(code string) bool {
	const maxLength = 40
	return code == timeline.UnknownCode ||
		len(code) <= maxLength && ascii.ConsistsOf(code, ascii.Letters+ascii.Digits+"_-")
}

// Codes are the codes of a call's results, by the responses that have them, with a name each.
type Codes map[string]map[string]Responder

// CheckCodes checks which code of the platform the result of a payment has: one that the driver knows, or
// timeline.UnknownCode.
func (s Suite) CheckCodes(t *testing.T, call operator.PayCall, cases Codes) {
	t.Helper()
	for want, responses := range cases {
		for name, respond := range responses {
			t.Run(name, func(t *testing.T) {
				got := operator.Pay(t.Context(), s.Driver(t, s.Stub(t, respond).URL), call)
				if got.Code != want {
					t.Errorf("the code %q, want %q: %v", got.Code, want, got.Fault)
				}
			})
		}
	}
}

// CheckCallbacks checks the reports of callbacks, with a name each.
func (s Suite) CheckCallbacks(t *testing.T, cases map[operator.CallbackReport]map[string]string) {
	t.Helper()
	reader, _ := s.Driver(t, localAddress).(operator.PaymentCallbackReader)
	for want, bodies := range cases {
		for name, body := range bodies {
			t.Run(name, func(t *testing.T) {
				got := reader.ReadPaymentCallback([]byte(body))
				checkCode(t, want.StatusReport, &got.StatusReport)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// CheckFields checks which values of the account's fields can be used, by their paths.
func (s Suite) CheckFields(t *testing.T, usable map[string]map[string]bool) {
	t.Helper()
	describer, _ := s.Driver(t, localAddress).(operator.AccountDescriber)
	for _, field := range describer.AccountFields() {
		for value, want := range usable[field.Path] {
			if err := field.Check(value); (err == nil) != want {
				t.Errorf("%s %q: %v, want usable %v", field.Path, value, err, want)
			}
		}
		delete(usable, field.Path)
	}
	if len(usable) > 0 {
		t.Errorf("the account has no fields %v", usable)
	}
}

// expectOutcome calls a new driver. It checks the outcome, and that the driver sent at most one request.
func (s Suite) expectOutcome(t *testing.T, stub *StubOperator, op Operation, outcome operator.Outcome) operator.Result {
	t.Helper()
	result := s.runCall(t, s.Driver(t, stub.URL), op)
	if result.Outcome != outcome {
		t.Fatalf("outcome %d, want %d: %v", result.Outcome, outcome, result.Fault)
	}
	if sent := len(stub.Requests()); sent > 1 {
		t.Fatalf("one call sent %d requests", sent)
	}
	return result
}

// runCall makes a call and checks the rules of every result.
func (s Suite) runCall(t *testing.T, driver operator.Driver, op Operation) operator.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
	defer cancel()
	page := op.Call(ctx, driver)
	s.checkFault(t, page.Result)
	complete := page.PayToken != "" && page.PaymentURL != "" && page.NotifToken != ""
	if op.Name == "web" && complete != (page.Outcome == operator.Succeeded) {
		t.Error("a page must come with Succeeded, and only with Succeeded")
	}
	return page.Result
}

// allowedFaultKinds are the allowed kinds of faults for an outcome.
var allowedFaultKinds = map[operator.Outcome][]fault.Kind{
	operator.Unknown: {fault.OutcomeUnknown},
	operator.Refused: {fault.OperatorError},
	operator.NotApplied: {
		fault.OperatorError, fault.IntegrationRejected, fault.OperatorUnavailable, fault.InvalidPart,
	},
}

// checkFault: every outcome except Succeeded has a fault of an allowed kind, without private values.
func (s Suite) checkFault(t *testing.T, result operator.Result) {
	t.Helper()
	if result.Outcome == operator.Succeeded {
		if result.Fault != nil {
			t.Errorf("a fault with Succeeded: %v", result.Fault)
		}
		return
	}
	if result.Fault == nil || result.Fault.Cause == nil {
		t.Fatal("no fault, or one without a cause")
	}
	allowed := slices.Contains(allowedFaultKinds[result.Outcome], result.Fault.Kind)
	if !allowed || (result.Fault.OperatorException != nil) != (result.Fault.Kind == fault.OperatorError) {
		t.Errorf("outcome %d with fault kind %d", result.Outcome, result.Fault.Kind)
	}
	s.CheckPrivate(t, result.Fault)
}
