package telemetry

// Counter is one of the things that are counted. Each is a metric of its own name, in Count.
type Counter int

// The counters. Requests and Errors, and the times, are counted by themselves in Write.
const (
	Replays              Counter = iota // a stored answer was given again
	MismatchedReplays                   // a repeat with another body was seen (decision "charge-repeat")
	Unknowns                            // the outcome of an operator call is unknown
	Released                            // an operator call was certainly not applied
	Refused                             // the operator refused for good
	Conflicts                           // a claim contradicts a final status or our amount
	OperatorAuthFailures                // the operator refused our credentials
	Delivered                           // a notification was accepted by the merchant
	DeliveryFailures                    // an attempt to notify failed
	DeadLetters                         // a notification was given up
	LookupFailures                      // a status lookup at the operator failed
	StaleUnknowns                       // an unknown outcome that only a retry or a person can settle (decision "repeat-window")
	UserSMSFailures                     // the purchaser's SMS of a payment was given up (decision "user-sms")
	EndpointsDisabled                   // a merchant answered 410: its notifications there are parked (decision "notifications")
	Throttled                           // a request was over its merchant's rate (decision "merchant-limits")
	LimitRefused                        // a charge or payment was over its merchant's amount of the day
	LimitFailures                       // the table of limits did not answer
	InternalErrors                      // a request was answered 500: the fault is ours
	counterCount
)

// counterNames are the metrics' names, in the order of the constants. Alarms name them: change none.
var counterNames = [counterCount]string{
	Replays:              "Replays",
	MismatchedReplays:    "MismatchedReplays",
	Unknowns:             "Unknowns",
	Released:             "Released",
	Refused:              "Refused",
	Conflicts:            "Conflicts",
	OperatorAuthFailures: "OperatorAuthFailures",
	Delivered:            "Delivered",
	DeliveryFailures:     "DeliveryFailures",
	DeadLetters:          "DeadLetters",
	LookupFailures:       "LookupFailures",
	StaleUnknowns:        "StaleUnknowns",
	UserSMSFailures:      "UserSMSFailures",
	EndpointsDisabled:    "EndpointsDisabled",
	Throttled:            "Throttled",
	LimitRefused:         "LimitRefused",
	LimitFailures:        "LimitFailures",
	InternalErrors:       "InternalErrors",
}

// String is the metric's name, "" for a number that is no counter.
func (c Counter) String() string {
	if c < 0 || c >= counterCount {
		return ""
	}
	return counterNames[c]
}
