package telemetry

// Counter is one of the things that are counted. Each is a metric of its own name, in Count.
type Counter int

// The counters. Requests and Errors, and the times, are counted by themselves in Write.
const (
	RepeatedRequests        Counter = iota // a stored answer was given again
	MismatchedRepeats                      // a repeat with another body was seen (decision "charge-repeat")
	UnknownOutcomes                        // the outcome of an operator call is unknown
	NotAppliedCalls                        // an operator call was certainly not applied
	OperatorRefusals                       // the operator refused for good
	StatusConflicts                        // a claim contradicts a final status or our amount
	OperatorAuthFailures                   // the operator refused our credentials
	DeliveredNotifications                 // a notification was accepted by the merchant
	DeliveryAttemptFailures                // an attempt to notify failed
	DeadLetters                            // a notification was given up
	LookupFailures                         // a status lookup at the operator failed
	StaleUnknownOutcomes                   // an unknown outcome that only a retry or a person can settle (decision "repeat-window")
	UserSMSFailures                        // the purchaser's SMS of a payment was given up (decision "user-sms")
	EndpointsDisabled                      // a merchant answered 410: its notifications there are parked (decision "notifications")
	RateLimitedRequests                    // a request was over its merchant's rate (decision "merchant-limits")
	DailyLimitRefusals                     // a charge or payment was over its merchant's amount of the day
	LimitStoreFailures                     // the table of limits did not answer
	InternalErrors                         // a request was answered 500: the fault is ours
	counterCount
)

// counterNames are the metrics' names, in the order of the constants. Alarms name them: change none.
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
	StaleUnknownOutcomes:    "StaleUnknownOutcomes",
	UserSMSFailures:         "UserSMSFailures",
	EndpointsDisabled:       "EndpointsDisabled",
	RateLimitedRequests:     "RateLimitedRequests",
	DailyLimitRefusals:      "DailyLimitRefusals",
	LimitStoreFailures:      "LimitStoreFailures",
	InternalErrors:          "InternalErrors",
}

// String is the metric's name, "" for a number that is no counter.
func (c Counter) String() string {
	if c < 0 || c >= counterCount {
		return ""
	}
	return counterNames[c]
}
