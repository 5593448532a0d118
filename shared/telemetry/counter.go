package telemetry

// Counter is one thing that is counted. Each counter is a CloudWatch metric of its own name, with the unit Count.
type Counter int

// maxCounters bounds the number of counters. The program panics at its start when more are declared.
const maxCounters = 32

// counterNames holds the names of the metrics, in the order of declaration. newCounter fills it; nothing changes it
// later.
var counterNames [maxCounters]string

// counterCount is the number of declared counters.
var counterCount Counter

// The counters. A line is all that a new one needs. Alarms refer to the names: never change one.
// A log line lists counters in the order of this table. Write itself counts Requests and Errors, and measures times.
var (
	RepeatedRequests        = newCounter("RepeatedRequests")        // a stored response was sent again
	MismatchedRepeats       = newCounter("MismatchedRepeats")       // retry with a new body (decision "charge-repeat")
	UnknownOutcomes         = newCounter("UnknownOutcomes")         // the outcome of an operator call is unknown
	NotAppliedCalls         = newCounter("NotAppliedCalls")         // an operator call was certainly not applied
	OperatorRefusals        = newCounter("OperatorRefusals")        // a final refusal by the operator
	StatusConflicts         = newCounter("StatusConflicts")         // a claim contradicts a final status or our amount
	OperatorAuthFailures    = newCounter("OperatorAuthFailures")    // the operator refused our credentials
	DeliveredNotifications  = newCounter("DeliveredNotifications")  // the merchant accepted a notification
	DeliveryAttemptFailures = newCounter("DeliveryAttemptFailures") // a delivery attempt failed
	DeadLetters             = newCounter("DeadLetters")             // a notification became a dead letter
	LookupFailures          = newCounter("LookupFailures")          // a status lookup at the operator failed
	StaleUnknownOutcomes    = newCounter("StaleUnknownOutcomes")    // see decision "repeat-window"
	UserSMSFailures         = newCounter("UserSMSFailures")         // purchaser SMS given up (decision "user-sms")
	EndpointsDisabled       = newCounter("EndpointsDisabled")       // 410 parks an endpoint (decision "notifications")
	RateLimitedRequests     = newCounter("RateLimitedRequests")     // over a rate limit (decision "merchant-limits")
	DailyLimitRefusals      = newCounter("DailyLimitRefusals")      // over a daily amount (decision "merchant-limits")
	LimitStoreFailures      = newCounter("LimitStoreFailures")      // the table of limits did not respond
	InternalErrors          = newCounter("InternalErrors")          // a request got 500: the fault is ours
)

// newCounter adds a metric to the table.
func newCounter(name string) Counter {
	counterNames[counterCount] = name
	counterCount++
	return counterCount - 1
}

// String returns the name of the metric, "" for a number that is not a counter.
func (c Counter) String() string {
	if c < 0 || c >= counterCount {
		return ""
	}
	return counterNames[c]
}
