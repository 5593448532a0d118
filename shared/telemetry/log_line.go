// Package telemetry writes one structured log line per request, which also carries its CloudWatch metrics (Embedded
// Metric Format, EMF). It does not depend on HTTP or Lambda, so background functions use it too.
//
// Its invariant is an allow-list by construction: no field of a LogLine takes arbitrary text. Each setter limits its
// value and drops or masks text of the wrong form. So no body, credential, one-time code or full phone number is
// logged.
package telemetry

import (
	"time"

	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/msisdn"
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
	parkedAge      time.Duration
	duration       time.Duration
	counters       [counterCount]int
}

// logFields are the fields of a log line that are not metrics, in their order in the document.
type logFields struct {
	AWS            metadata `json:"_aws"`
	RequestID      string   `json:"RequestID,omitempty"`
	StackName      string   `json:"Stack,omitempty"`
	Operation      string   `json:"Operation,omitempty"`
	Merchant       string   `json:"Merchant,omitempty"`
	TransactionKey string   `json:"TransactionKey,omitempty"`
	Operator       string   `json:"Operator,omitempty"`
	Country        string   `json:"Country,omitempty"`
	Channel        string   `json:"Channel,omitempty"`
	MSISDN         string   `json:"MSISDN,omitempty"`
	Outcome        string   `json:"Outcome,omitempty"`
	ErrorID        string   `json:"ErrorID,omitempty"`
	Status         int      `json:"Status,omitempty"`
	Repeated       bool     `json:"Repeated,omitempty"`
	ColdStart      bool     `json:"ColdStart,omitempty"`
	Cause          string   `json:"Cause,omitempty"`
}

// metadata is the head of the Embedded Metric Format.
type metadata struct {
	Timestamp         int64       `json:"Timestamp"` // milliseconds since 1970
	CloudWatchMetrics []directive `json:"CloudWatchMetrics"`
}

type directive struct {
	Namespace  string     `json:"Namespace"`
	Dimensions [][]string `json:"Dimensions"`
	Metrics    []metric   `json:"Metrics"`
}

type metric struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// NewLogLine begins the line of one request, message or background pass of an operation ("charge", "sweep"). started is
// the timestamp of the line and its metrics.
func NewLogLine(operation string, started time.Time) *LogLine {
	l := &LogLine{started: started}
	l.SetOperation(operation)
	return l
}

// SetStackName sets the name of the deployed stack: letters, digits and "-", at most 128. Anything else is dropped. It
// is a dimension of the metrics, so that alarms of two stacks in one account stay separate. Without it the line has no
// metrics.
func (l *LogLine) SetStackName(stack string) {
	l.fields.StackName = filterIdentifier(stack, maxStackName)
}

// SetOperation sets the operation, a dimension of the metrics: a word of letters, digits, "-", "_" and ".".
func (l *LogLine) SetOperation(operation string) { l.fields.Operation = filterWord(operation) }

// SetRequestID sets the request id of API Gateway or Lambda: letters, digits, "-", "_" and ".", at most 40. Anything
// else is dropped.
func (l *LogLine) SetRequestID(id string) {
	l.fields.RequestID = maskPhoneNumber(filterIdentifier(id, maxIdentifier))
}

// SetMerchant sets the merchant's name, 1 to 20 letters and digits. Anything else is dropped.
func (l *LogLine) SetMerchant(name string) { l.fields.Merchant = filterMerchantName(name) }

// SetTransactionKey sets the order_id, clientCorrelator or referenceCode. Merchants choose these keys, so a key may
// contain a customer's phone number: possible numbers are masked (maskPhoneNumbers). A key that looks like a credential
// is dropped. A UUID stays. An order_id, <MerchantName>_<digits>, stays too, because the specification requires its
// digits. The key of a charge or an SMS never counts as an order_id.
func (l *LogLine) SetTransactionKey(key string) {
	operation := l.fields.Operation
	l.fields.TransactionKey = redactKey(key, operation != "charge" && operation != "sms")
}

// redactKey limits a key that a merchant chose, masks phone numbers in it and drops a credential. An order_id stays
// unchanged if mayBeOrderID is set, because operations engineers search the log by it.
func redactKey(text string, mayBeOrderID bool) string {
	if looksLikeCredential(text) {
		return logsafe.Hidden
	}
	text = truncate(replaceUnprintable(text), 4*maxKey) // masked before truncation: no half of a number is left
	if mayBeOrderID && isOrderID(text) || isUUID(text) {
		return text
	}
	return truncate(maskPhoneNumbers(truncateRandom(text)), maxKey)
}

// SetOperator sets the operator, a dimension of the metrics. Pass a name of the operator table, never the header
// itself: otherwise clients could create metrics.
func (l *LogLine) SetOperator(operator string) { l.fields.Operator = filterWord(operator) }

// SetRouting sets the operator as SetOperator does, the country's alpha-2 code, and the payment channel: web, tpe or
// ussd.
func (l *LogLine) SetRouting(operator, country, channel string) {
	l.SetOperator(operator)
	l.fields.Country, l.fields.Channel = filterWord(country), filterWord(channel)
}

// SetOutcome sets the result in one word: "done", "refused", "replay", "unknown".
func (l *LogLine) SetOutcome(outcome string) { l.fields.Outcome = filterWord(outcome) }

// SetErrorID sets the messageId of the response: SVCnnnn, POLnnnn or 900nnn. Anything else is dropped.
func (l *LogLine) SetErrorID(id string) { l.fields.ErrorID = filterErrorID(id) }

// SetStatus sets the HTTP status of the response. A status from 500 on counts as an error.
func (l *LogLine) SetStatus(status int) { l.fields.Status = status }

// SetRepeated records whether a stored response was sent. It also counts RepeatedRequests, once.
func (l *LogLine) SetRepeated(repeated bool) {
	l.fields.Repeated = repeated
	l.counters[RepeatedRequests] = 0
	if repeated {
		l.counters[RepeatedRequests] = 1
	}
}

// SetColdStart records whether this was the first invocation of the process.
func (l *LogLine) SetColdStart(cold bool) { l.fields.ColdStart = cold }

// AddOperatorTime adds the duration of one operator call.
func (l *LogLine) AddOperatorTime(elapsed time.Duration) {
	l.operatorCalled = true
	l.operatorTime += elapsed
}

// SetScheduleDelay sets the delay between the due time of scheduled work and its start; a negative delay counts as 0.
func (l *LogLine) SetScheduleDelay(delay time.Duration) {
	l.delayMeasured = true
	l.scheduleDelay = max(delay, 0)
}

// SetStalledAge sets how long due work could have been done and was not, because something that it needs is missing;
// the longest of several counts.
func (l *LogLine) SetStalledAge(age time.Duration) { l.stalledAge = max(l.stalledAge, age) }

// SetParkedAge sets how long a notification has been parked at a disabled endpoint.
func (l *LogLine) SetParkedAge(age time.Duration) { l.parkedAge = age }

// SetDuration sets the total duration.
func (l *LogLine) SetDuration(elapsed time.Duration) { l.duration = elapsed }

// SetMSISDN sets a phone number. Only its last two digits are kept.
func (l *LogLine) SetMSISDN(number string) { l.fields.MSISDN = msisdn.Mask(number) }

// SetCause sets the reason of a failure, as package logsafe describes it: at most 512 bytes without foreign text. nil
// clears it.
func (l *LogLine) SetCause(err error) { l.fields.Cause = truncate(logsafe.Text(err), maxCause) }

// Increment adds one to a counter.
func (l *LogLine) Increment(counter Counter) { l.Add(counter, 1) }

// Add adds n to a counter. A number that is not a counter is ignored.
func (l *LogLine) Add(counter Counter, n int) {
	if counter >= 0 && counter < counterCount {
		l.counters[counter] += n
	}
}
