// Package oneapi renders every error of the API in the one shape of the specification's error family. It has three
// tables: the messages of the wire, the kinds of faults, and the specification's internal codes (PDK). It also decodes
// an operator's error of that shape.
//
// It decides nothing about outcomes. Its invariant: only Render turns an error into a response. The response's values
// come from the tables, the fault's part and value, or an operator's exception, and never from a cause.
package oneapi

import "slices"

// Exception is which of the two members of requestError holds a message.
type Exception string

// The exceptions of the OneAPI family. The gateway's own 9009xx codes are policy exceptions (decision "error-table").
const (
	ServiceException Exception = "serviceException"
	PolicyException  Exception = "policyException"
)

// Message is a row of the table of messages.
type Message struct {
	// ID is the messageId on the wire.
	ID string
	// Text keeps its literal %1 and %2; the values are in variables (decision "error-shape").
	Text string
	// Exception is the member of requestError.
	Exception Exception
	// Status is the HTTP status, unless the kind of fault has another one.
	Status int
}

// messages are in the order of decision "error-table", then that of decision "authentication".
var messages = []Message{
	{"SVC0001", "A service error occurred. Error code is %1", ServiceException, 500},
	{"SVC0002", "Invalid input value for message part %1", ServiceException, 400},
	{"SVC0003", "Invalid input value for message part %1, valid values are %2", ServiceException, 400},
	{"SVC0004", "No valid addresses provided in message part %1", ServiceException, 400},
	{"SVC0005", "Correlator %1 specified in message part %2 is a duplicate", ServiceException, 409},
	{"SVC0270", "Charging operation failed, the charge was not applied", ServiceException, 400},
	{"SVC0280", "Message too long; maximum length is %1 characters", ServiceException, 400},
	{"POL0001", "A policy error occurred. Error code is %1", PolicyException, 403},
	{"POL0253", "Payment operation refused by user", PolicyException, 403},
	{"POL1000", "User has insufficient credit for transaction", PolicyException, 403},
	{"900902", "Missing Credentials", PolicyException, 401},
	{"900901", "Invalid Credentials", PolicyException, 401},
	{"900908", "Resource forbidden", PolicyException, 403},
	{"900800", "Message throttled out", PolicyException, 429},
	{"900906", "No matching resource found", PolicyException, 404},
}

// Messages returns a copy of the table of messages, for documentation and for tests of API Gateway's own responses.
func Messages() []Message { return slices.Clone(messages) }

func findMessage(id string) (message Message, found bool) {
	if i := slices.IndexFunc(messages, func(m Message) bool { return m.ID == id }); i >= 0 {
		return messages[i], true
	}
	return Message{}, false
}

// IsMessageID reports whether the specification has a message id.
func IsMessageID(id string) bool {
	_, found := findMessage(id)
	return found
}
