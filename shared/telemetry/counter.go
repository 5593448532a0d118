package telemetry

// Counter is one thing that is counted. Each counter is a CloudWatch metric of its own name, with the unit Count.
type Counter int

// The counters. A new one is a line here and its name below; log lines and metrics follow. A log line lists counters in
// this order. Write itself counts Requests and Errors, and measures times.
const (
	RepeatedRequests        Counter = iota // a stored response was sent again
	MismatchedRepeats                      // a retry had another body (decision "charge-repeat")
	UnknownOutcomes                        // the outcome of an operator call is unknown
	NotAppliedCalls                        // an operator call was certainly not applied
	OperatorRefusals                       // a final refusal by the operator
	StatusConflicts                        // a claim contradicts a final status or our amount
	OperatorAuthFailures                   // our credentials are refused or incomplete
	DeliveredNotifications                 // the merchant accepted a notification
	DeliveryAttemptFailures                // a delivery attempt failed
	DeadLetters                            // a notification became a dead letter
	LookupFailures                         // a status lookup at the operator failed
	UnreadCallbacks                        // an authentic callback could not be read
	StaleUnknownOutcomes                   // only a retry or a person can end it (decision "repeat-window")
	UserSMSFailures                        // a payer's SMS was given up (decision "user-sms")
	EndpointsDisabled                      // a merchant's 410 parked an endpoint (decision "notifications")
	RateLimitedRequests                    // a request over its merchant's rate limit (decision "merchant-limits")
	DailyLimitRefusals                     // a request over the daily amount (decision "merchant-limits")
	LimitStoreFailures                     // the table of limits did not respond
	InternalErrors                         // a request got 500: the fault is ours
	UndecodableEntries                     // a due entry could not be decoded
	StaleKeyRings                          // a key ring was used that could not be renewed (decision "key-rings")
	UnmappedCodes                          // an operator refused with a code that its driver does not know
	ExhaustedAccounts                      // an operator refused a call because our account has no units
	RateLimitedLookups                     // a lookup waited for its account's rate (decision "lookup-rate")
	OpenedCircuits                         // a circuit opened, or opened again (decision "circuit-breaker")
	ClosedCircuits                         // the probes of a circuit closed it
	CircuitRefusals                        // a new transaction was refused by an open circuit
	counterCount
)

// counterNames are the names of the metrics. Alarms refer to them: never change one.
var counterNames = [counterCount]string{
	RepeatedRequests:        "RepeatedRequests",
	MismatchedRepeats:       "MismatchedRepeats",
	UnknownOutcomes:         "UnknownOutcomes",
	NotAppliedCalls:         "NotAppliedCalls",
	OperatorRefusals:        "OperatorRefusals",
	StatusConflicts:         "StatusConflicts",
	OperatorAuthFailures:    "OperatorAuthFailures",
	DeliveredNotifications:  "DeliveredNotifications",
	DeliveryAttemptFailures: "DeliveryAttemptFailures",
	DeadLetters:             "DeadLetters",
	LookupFailures:          "LookupFailures",
	UnreadCallbacks:         "UnreadCallbacks",
	StaleUnknownOutcomes:    "StaleUnknownOutcomes",
	UserSMSFailures:         "UserSMSFailures",
	EndpointsDisabled:       "EndpointsDisabled",
	RateLimitedRequests:     "RateLimitedRequests",
	DailyLimitRefusals:      "DailyLimitRefusals",
	LimitStoreFailures:      "LimitStoreFailures",
	InternalErrors:          "InternalErrors",
	UndecodableEntries:      "UndecodableEntries",
	StaleKeyRings:           "StaleKeyRings",
	UnmappedCodes:           "UnmappedCodes",
	ExhaustedAccounts:       "ExhaustedAccounts",
	RateLimitedLookups:      "RateLimitedLookups",
	OpenedCircuits:          "OpenedCircuits",
	ClosedCircuits:          "ClosedCircuits",
	CircuitRefusals:         "CircuitRefusals",
}

// String returns the name of the metric, "" for a number that is not a counter.
func (c Counter) String() string {
	if c < 0 || c >= counterCount {
		return ""
	}
	return counterNames[c]
}
