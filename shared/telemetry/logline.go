// Package telemetry writes one structured log line per request, which also carries its CloudWatch metrics (Embedded
// Metric Format, EMF). It does not depend on HTTP or Lambda, so background functions use it too.
//
// Its invariant is an allow-list by construction: no field of a LogLine takes arbitrary text. Each setter limits its
// value and drops or masks text of the wrong form. So no body, credential, one-time code or full phone number is
// logged.
package telemetry

import (
	"time"

	"mobilegateway/shared/msisdn"
)

// The limits of texts in a line, in bytes.
const (
	maxStackName      = 128 // as CloudFormation allows
	maxVocabularyWord = 40  // operations, operators, countries, channels, outcomes
	maxIdentifier     = 40  // request ids: a UUID has 36, our tokens more than 40
	maxMerchantName   = 20  // merchant names (decision "merchant-names")
	maxOrderID        = 30  // order_ids (specification, Limits)
	maxKey            = 96  // order_id, clientCorrelator, referenceCode
	maxCause          = 512 // causes, after redaction
)

// LogLine is the log line of one request, message or background pass. NewLogLine makes it; the zero value is not ready
// for use. A LogLine belongs to one goroutine.
type LogLine struct {
	started        time.Time
	fields         logFields
	operatorTime   time.Duration
	operatorCalled bool
	scheduleDelay  time.Duration
	delayMeasured  bool
	stalledAge     time.Duration
	duration       time.Duration
	counters       [counterCount]int
}

// NewLogLine begins the line of one request, message or background pass of an operation ("charge", "sweep"). started is
// the timestamp of the line and its metrics.
func NewLogLine(operation string, started time.Time) *LogLine {
	e := &LogLine{started: started}
	e.SetOperation(operation)
	return e
}

// SetStackName sets the name of the deployed stack: letters, digits and "-", at most 128. Anything else is dropped. It
// is a dimension of the metrics, so that alarms of two stacks in one account stay separate. Without it the line has no
// metrics.
func (e *LogLine) SetStackName(stack string) {
	e.fields.StackName = filterIdentifier(stack, maxStackName)
}

// SetOperation sets the operation, a dimension of the metrics: a word of letters, digits, "-", "_" and ".".
func (e *LogLine) SetOperation(operation string) { e.fields.Operation = filterWord(operation) }

// SetRequestID sets the request id of API Gateway or Lambda: letters, digits, "-", "_" and ".", at most 40. Anything
// else is dropped.
func (e *LogLine) SetRequestID(id string) {
	e.fields.RequestID = maskPhoneNumber(filterIdentifier(id, maxIdentifier))
}

// SetMerchant sets the merchant's name, 1 to 20 letters and digits. Anything else is dropped.
func (e *LogLine) SetMerchant(name string) { e.fields.Merchant = filterMerchantName(name) }

// SetTransactionKey sets the order_id, clientCorrelator or referenceCode. Merchants choose these keys, so a key may
// contain a customer's phone number: possible numbers are masked (maskPhoneNumbers). A key that looks like a credential
// is dropped. A UUID stays. An order_id, <MerchantName>_<digits>, stays too, because the specification requires its
// digits. The key of a charge or an SMS never counts as an order_id.
func (e *LogLine) SetTransactionKey(key string) {
	operation := e.fields.Operation
	e.fields.TransactionKey = redactKey(key, operation != "charge" && operation != "sms")
}

// SetOperator sets the operator, a dimension of the metrics. Pass a name of the operator table, never the header
// itself: otherwise clients could create metrics.
func (e *LogLine) SetOperator(operator string) { e.fields.Operator = filterWord(operator) }

// SetCountry sets the country's alpha-2 code.
func (e *LogLine) SetCountry(country string) { e.fields.Country = filterWord(country) }

// SetChannel sets the payment channel: web, tpe or ussd.
func (e *LogLine) SetChannel(channel string) { e.fields.Channel = filterWord(channel) }

// SetOutcome sets the result in one word: "done", "refused", "replay", "unknown".
func (e *LogLine) SetOutcome(outcome string) { e.fields.Outcome = filterWord(outcome) }

// SetErrorID sets the messageId of the response: SVCnnnn, POLnnnn or 900nnn. Anything else is dropped.
func (e *LogLine) SetErrorID(id string) { e.fields.ErrorID = filterErrorID(id) }

// SetStatus sets the HTTP status of the response. A status from 500 on counts as an error.
func (e *LogLine) SetStatus(status int) { e.fields.Status = status }

// SetRepeated records whether a stored response was sent. It also counts RepeatedRequests, once.
func (e *LogLine) SetRepeated(repeated bool) {
	e.fields.Repeated = repeated
	e.counters[RepeatedRequests] = 0
	if repeated {
		e.counters[RepeatedRequests] = 1
	}
}

// SetColdStart records whether this was the first invocation of the process.
func (e *LogLine) SetColdStart(cold bool) { e.fields.ColdStart = cold }

// AddOperatorTime adds the duration of one operator call.
func (e *LogLine) AddOperatorTime(elapsed time.Duration) {
	e.operatorCalled = true
	e.operatorTime += elapsed
}

// SetScheduleDelay sets the delay between the due time of scheduled work and its start; a negative delay counts as 0.
func (e *LogLine) SetScheduleDelay(delay time.Duration) {
	e.delayMeasured = true
	e.scheduleDelay = max(delay, 0)
}

// SetStalledAge sets how long due work could have been done and was not, because something that it needs is missing;
// the longest of several counts.
func (e *LogLine) SetStalledAge(age time.Duration) { e.stalledAge = max(e.stalledAge, age) }

// SetDuration sets the total duration.
func (e *LogLine) SetDuration(elapsed time.Duration) { e.duration = elapsed }

// SetMSISDN sets a phone number. Only its last two digits are kept.
func (e *LogLine) SetMSISDN(number string) { e.fields.MSISDN = msisdn.Mask(number) }

// SetCause sets the reason of a failure: the error text, at most 512 bytes, redacted. It loses paths and queries of
// URLs, text after "=", credentials, long opaque words, and runs of four digits and more except API error codes. nil
// clears it.
func (e *LogLine) SetCause(err error) {
	e.fields.Cause = ""
	if err != nil {
		e.fields.Cause = redactCause(err.Error())
	}
}

// Increment adds one to a counter.
func (e *LogLine) Increment(counter Counter) { e.Add(counter, 1) }

// Add adds n to a counter. A number that is not a counter is ignored.
func (e *LogLine) Add(counter Counter, n int) {
	if counter >= 0 && counter < counterCount {
		e.counters[counter] += n
	}
}
