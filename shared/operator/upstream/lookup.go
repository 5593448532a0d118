package upstream

import (
	"context"
	"net/http"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// Lookup is the status lookup of a platform.
type Lookup struct {
	Build Build
	// IsNotFound reports whether a complete response proves that the platform does not know the payment.
	IsNotFound func(Exchange) bool
	// Read reads the document of a response with 200 or 201; false unless it has a status of this payment. The report's
	// Status is "" for one that the driver does not know.
	Read func(*strictjson.Reader) (operator.StatusReport, bool)
}

// SendLookup makes a lookup. It may always be sent again: a 401 is not processed.
func (b *Base) SendLookup(ctx context.Context, call operator.Call, lookup Lookup) operator.StatusResponse {
	x, unsent := b.Send(ctx, call, lookup.Build, Exchange.IsUnauthorized)
	if unsent != nil {
		return operator.StatusResponse{Cause: unsent}
	}
	return lookup.ReadResponse(x)
}

// LookupCause returns why a lookup has no status. It is IntegrationRejected if the platform refused our credentials.
func (x Exchange) LookupCause(lookup, code string) error {
	cause := logsafe.Errorf("%s got no response: %w", logsafe.Name(lookup), x.Err)
	if x.Err == nil {
		cause = logsafe.Errorf("%s responded %d without a status", logsafe.Name(lookup), x.Status)
		if code != "" {
			cause = logsafe.Errorf("%w, with code %s", cause, logsafe.Code(code))
		}
	}
	if x.IsRefused() {
		return &fault.Fault{Kind: fault.IntegrationRejected, Cause: cause}
	}
	return cause
}

// ReadResponse reads the response to a lookup.
func (l Lookup) ReadResponse(x Exchange) operator.StatusResponse {
	if x.Err == nil && l.IsNotFound(x) {
		return operator.StatusResponse{OrderNotFound: true,
			Cause: logsafe.New("the platform does not know the payment")}
	}
	doc, isDocument := x.Document()
	if !isDocument || x.Status != http.StatusOK && x.Status != http.StatusCreated {
		return operator.StatusResponse{Cause: x.LookupCause("the status lookup", x.ErrorCode("code"))}
	}
	switch report, isOurs := l.Read(doc); {
	case !isOurs:
		return operator.StatusResponse{Cause: logsafe.New("the status lookup responded without this payment's status")}
	case report.Status == "":
		return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	default:
		return operator.StatusResponse{StatusReport: report}
	}
}
