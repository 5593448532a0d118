// Package fault describes an error of a request: its kind, the message part or value that it concerns, and its cause.
//
// It renders nothing. Package oneapi turns kinds into responses by one table, and every error without a *Fault into a
// bare internal error. The invariant: Cause is only logged, and never reaches a client.
package fault

import (
	"errors"
	"strings"

	"mobilegateway/shared/logsafe"
)

// Kind is the class of a fault. Each kind is one row of oneapi's table.
type Kind int

// The kinds, in the order in which a request is refused (decision "order-of-refusals"), then those of the operator
// call.
const (
	Internal             Kind = iota // an error of ours; 500
	RouteNotFound                    // unknown path or method; 404 900906
	BodyTooLarge                     // body over the limit; 413 SVC0002
	MissingCredentials               // no Authorization; 401 900902
	InvalidCredentials               // unknown, expired or revoked token; 401 900901
	UnsupportedMediaType             // not application/json; 415 SVC0002
	MissingPart                      // a required part is absent; 400 SVC0002 (PDK_SMSW_0005)
	InvalidPart                      // a part's value breaks its rule; 400 SVC0002 (PDK_SMSW_0009)
	ValueNotAllowed                  // a part's value is not one of a known set; 400 SVC0003
	InvalidAddress                   // an address in the body; 400 SVC0004
	InvalidPathAddress               // the address in the path; 404 SVC0004
	MessageTooLong                   // SMS text too long; 400 SVC0280
	Forbidden                        // known merchant, not entitled; 403 900908
	RateLimited                      // over a limit; 429 900800 with Retry-After
	DailyLimitExceeded               // over the merchant's amount of the day; 403 POL0001
	NotFound                         // no such order or resource for this merchant; 404 SVC0002
	DuplicateKey                     // the key is taken; 409 SVC0005
	RequestInProgress                // the key is being worked on; 409 SVC0005 with Retry-After
	IntegrationRejected              // our integration's fault, not applied; 502 SVC0001
	OperatorUnavailable              // operator down, not applied; 503 SVC0001 with Retry-After
	OutcomeUnknown                   // it may have been applied; 504 SVC0001 with Retry-After
	OperatorError                    // the operator's own SVC or POL, passed on
)

// Fault is one thing that went wrong.
type Fault struct {
	Kind Kind
	// Part is the message part in the specification's words: a header's name, or a body path such as
	// "amountTransaction.referenceCode".
	Part string
	// ClientKey reports that Part has a key that the client chose (a duplicate key). Only the client sees it then.
	ClientKey bool
	// Value depends on the kind: the address of InvalidAddress and InvalidPathAddress, the key of DuplicateKey and
	// RequestInProgress, the limit of MessageTooLong, the valid values of ValueNotAllowed. For DailyLimitExceeded it is
	// the remaining amount, and Part is the currency.
	Value string
	// RetryAfter is the wait after RateLimited or OperatorUnavailable in whole seconds; 0 for the kind's own.
	RetryAfter int
	// OperatorException is set only with OperatorError.
	OperatorException *OperatorException
	// Reason is one word for the merchant beside the specified body, the header X-Error-Reason; "" for none. With it,
	// Part is the header X-Error-Part.
	Reason string
	// Location is the resource that exists, for DuplicateKey (decision "sms-duplicate") and OutcomeUnknown (decision
	// "charge-unknown"); "" for none.
	Location string
	// Cause is for the log, never for the client.
	Cause error
}

// ReasonOtherBody is the Reason of a request whose key belongs to a request with another body.
const ReasonOtherBody = "other-body"

// ReasonCircuitOpen is the Reason of a new transaction whose operator does not respond (decision "circuit-breaker").
const ReasonCircuitOpen = "circuit-open"

// OperatorException is an exception of the OneAPI family as an operator sent it.
type OperatorException struct {
	// MessageID is SVCnnnn, POLnnnn or 9009xx.
	MessageID string
	// Text is the operator's text; used only where our own table has no row for MessageID.
	Text string
	// Variables are %1, %2 ... in order.
	Variables []string
	// HTTPStatus is the status of the operator's response.
	HTTPStatus int
}

// Error names the kind, the part and the cause: "invalid in amountTransaction.endUserId". It never contains Value, nor
// a Part with a key that the client chose.
func (f *Fault) Error() string { return f.describe(error.Error) }

// LogText returns the same text with the cause as a log line may show it.
func (f *Fault) LogText() string { return f.describe(logsafe.Text) }

func (f *Fault) describe(describeCause func(error) string) string {
	text := f.Kind.String()
	switch {
	case f.ClientKey:
		text += " in a key of the client"
	case f.Part != "":
		text += " in " + logsafe.FilterCode(f.Part)
	}
	if f.OperatorException != nil {
		text += " operator " + logsafe.FilterCode(f.OperatorException.MessageID)
	}
	if f.Cause != nil {
		text += ": " + describeCause(f.Cause)
	}
	return text
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// New makes a fault of a kind that needs no other field.
func New(kind Kind) *Fault { return &Fault{Kind: kind} }

// ForPart makes a fault about a message part.
func ForPart(kind Kind, part string) *Fault { return &Fault{Kind: kind, Part: part} }

// NotAllowed returns a fault for a part with another value than the valid ones, which it lists.
func NotAllowed(part string, valid []string) *Fault {
	return &Fault{Kind: ValueNotAllowed, Part: part, Value: strings.Join(valid, ", ")}
}

// BrokenRule makes an InvalidPart fault. The rule is for the log: the response only names the part.
func BrokenRule(part string, rule error) *Fault {
	return &Fault{Kind: InvalidPart, Part: part, Cause: rule}
}

// NotEntitled makes a Forbidden fault. The reason is for the log: the response has none.
func NotEntitled(reason error) *Fault { return &Fault{Kind: Forbidden, Cause: reason} }

// NewInternal makes an internal fault with its cause.
func NewInternal(cause error) *Fault { return &Fault{Kind: Internal, Cause: cause} }

// FromError finds the Fault in an error. Every other error becomes Internal, with err as its cause; nil stays nil.
func FromError(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, isFault := errors.AsType[*Fault](err); isFault {
		return f
	}
	return NewInternal(err)
}
