// Package telemetry writes one line for each piece of work: a JSON document that is at once the log entry and the
// CloudWatch metrics (Embedded Metric Format).
//
// It knows neither HTTP nor Lambda, so that the relay and the sweep use it as the API does. Its invariant is an
// allow-list by construction: an Event has no field that takes any text. Each setter bounds its value and drops or
// masks what does not look like its kind, so that no body, credential, one-time code or full number reaches a log.
package telemetry

import (
	"time"

	"mobilegateway/shared/msisdn"
)

// The limits of texts in a line, in bytes.
const (
	maxStackName      = 128 // stacks: what CloudFormation allows
	maxVocabularyWord = 40  // operations, operators, countries, channels, outcomes
	maxIdentifier     = 40  // request ids: a UUID has 36, our tokens more than 40
	maxMerchantName   = 20  // merchant names (decision "merchant-names")
	maxOrderID        = 30  // order_ids (specification, Limits)
	maxKey            = 96  // order_id, clientCorrelator, referenceCode
	maxCause          = 512 // causes, after scrubbing
)

// LogLine is one piece of work. The zero value is not ready for use: call New. An Event belongs to one goroutine.
type LogLine struct {
	started        time.Time
	stack          string
	requestID      string
	operation      string
	merchant       string
	transactionKey string
	operator       string
	country        string
	channel        string
	outcome        string
	errorID        string
	msisdn         string
	cause          string
	status         int
	repeated       bool
	coldStart      bool
	operatorTime   time.Duration
	operatorCalled bool
	scheduleDelay  time.Duration
	delayMeasured  bool
	duration       time.Duration
	counters       [counterCount]int
}

// NewLogLine begins the event of one request, message or pass of an operation ("charge", "sweep"). The line and its metrics
// carry the time started.
func NewLogLine(operation string, started time.Time) *LogLine {
	e := &LogLine{started: started}
	e.SetOperation(operation)
	return e
}

// SetStackName names the stack that the work was done in, a dimension of the metrics, so that the alarms of two stacks of one
// account and region tell them apart: letters, digits and "-", at most 128; anything else is dropped. Without a stack the
// line makes no metrics.
func (e *LogLine) SetStackName(stack string) { e.stack = filterIdentifier(stack, maxStackName) }

// SetOperation names the operation, a dimension of the metrics: a word of letters, digits, "-", "_" and ".".
func (e *LogLine) SetOperation(operation string) { e.operation = filterWord(operation) }

// SetRequestID sets the id that API Gateway or Lambda gave to the request: letters, digits, "-", "_" and ".", at most 40;
// anything else is dropped.
func (e *LogLine) SetRequestID(id string) {
	e.requestID = maskPhoneNumber(filterIdentifier(id, maxIdentifier))
}

// SetMerchant sets the merchant's name, 1 to 20 letters and digits; anything else is dropped.
func (e *LogLine) SetMerchant(name string) { e.merchant = filterMerchantName(name) }

// SetTransactionKey sets the order_id, clientCorrelator or referenceCode of the work. Merchants choose it, and may put a customer's
// telephone number into it: what may be one is masked wherever it stands and however it is written (maskPhoneNumbers), and a
// key that looks like a credential is dropped. A UUID stays, and so does what has the form of an order_id,
// <MerchantName>_<digits>, whose digits the specification asks for: but not as the key of a charge or an SMS, which is no
// order_id.
func (e *LogLine) SetTransactionKey(key string) {
	e.transactionKey = redactKey(key, e.operation != "charge" && e.operation != "sms")
}

// SetOperator names the operator, a dimension of the metrics: set it from the operator table, after the header was
// checked, so that no client can make metrics.
func (e *LogLine) SetOperator(operator string) { e.operator = filterWord(operator) }

// SetCountry sets the country's alpha-2 code.
func (e *LogLine) SetCountry(country string) { e.country = filterWord(country) }

// SetChannel sets the payment channel: web, tpe or ussd.
func (e *LogLine) SetChannel(channel string) { e.channel = filterWord(channel) }

// SetOutcome says in a word what became of the work: "done", "refused", "replay", "unknown".
func (e *LogLine) SetOutcome(outcome string) { e.outcome = filterWord(outcome) }

// SetErrorID sets the messageId of the answer: SVCnnnn, POLnnnn or 900nnn; anything else is dropped.
func (e *LogLine) SetErrorID(id string) { e.errorID = filterErrorID(id) }

// SetStatus sets the HTTP status of the answer. From 500 on the event counts as an error.
func (e *LogLine) SetStatus(status int) { e.status = status }

// SetRepeated says that a stored answer was given. It also counts Replays, once.
func (e *LogLine) SetRepeated(replayed bool) {
	e.repeated = replayed
	e.counters[RepeatedRequests] = 0
	if replayed {
		e.counters[RepeatedRequests] = 1
	}
}

// SetColdStart says that this was the first work of the process.
func (e *LogLine) SetColdStart(cold bool) { e.coldStart = cold }

// AddOperatorTime adds the time of one call of the operator.
func (e *LogLine) AddOperatorTime(elapsed time.Duration) {
	e.operatorCalled = true
	e.operatorTime += elapsed
}

// SetScheduleDelay sets how long after its due time scheduled work was taken up; before it counts as 0.
func (e *LogLine) SetScheduleDelay(delay time.Duration) {
	e.delayMeasured = true
	e.scheduleDelay = max(delay, 0)
}

// SetDuration sets the time of the whole work.
func (e *LogLine) SetDuration(elapsed time.Duration) { e.duration = elapsed }

// SetMSISDN sets a telephone number, of which only the last two digits are kept.
func (e *LogLine) SetMSISDN(number string) { e.msisdn = msisdn.Mask(number) }

// SetCause sets why something failed: the text of the error, bounded and without the paths and queries of URLs, what follows
// "=", credentials, long opaque words, and runs of four digits and more but for error codes of the API. nil removes it.
func (e *LogLine) SetCause(err error) {
	e.cause = ""
	if err != nil {
		e.cause = redactCause(err.Error())
	}
}

// Increment adds one to a counter.
func (e *LogLine) Increment(counter Counter) { e.Add(counter, 1) }

// Add adds n to a counter.
func (e *LogLine) Add(counter Counter, n int) {
	if counter >= 0 && counter < counterCount {
		e.counters[counter] += n
	}
}
