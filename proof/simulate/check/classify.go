package check

import (
	"strings"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/outside"
)

// responseKind is what a response reports about its key.
type responseKind int

// The kinds of responses. A response without information, such as a refused token, is responseNone.
const (
	responseNone     responseKind = iota
	responseLost                  // no response: anything may have happened
	responseSuccess               // the operator applied or accepted it
	responseRefused               // the operator's final refusal
	responseReleased              // not applied: the key may come again
	responseUnknown               // it may have been applied
	responseTaken                 // another request is in progress, or has the key
)

// observation is a response, as the sequential model sees it.
type observation struct {
	kind responseKind
	body string // of a success or a refusal
	// maybeReleased is true of an unknown outcome in a history with freezes or failures of tables. The write of a
	// release may then have no response in time: the gateway reports an unknown outcome of a key that is free.
	maybeReleased bool
}

// classify returns what a response to an order of a function says.
func classify(function string, r outside.Response) observation {
	switch {
	case r.Status == 201 || r.Status == 200:
		if function == deployment.SMS {
			return observation{kind: responseSuccess} // a repeat gets 409 with the same location
		}
		return observation{kind: responseSuccess, body: r.Body}
	case r.Status == 409 && r.Location != "":
		return observation{kind: responseSuccess}
	case r.Status == 409:
		return observation{kind: responseTaken}
	case r.Status == 504:
		return observation{kind: responseUnknown}
	case strings.HasPrefix(r.MessageID, "POL") && IsKnown(r) || r.MessageID == "SVC0270":
		return observation{kind: responseRefused, body: r.Body}
	case r.Status == 503 && r.MessageID == "SVC0001":
		return observation{kind: responseReleased}
	}
	return observation{}
}

// IsKnown reports whether a response reports the outcome of the request: a success, or the operator's final refusal.
func IsKnown(r outside.Response) bool {
	isRefusal := r.Status == 403 && !isOverLimit(r)
	return r.Status == 201 || r.Status == 200 || isRefusal || r.Status == 409 && r.Location != ""
}

// isOverLimit reports whether a response refuses a request because of the merchant's daily amount.
func isOverLimit(r outside.Response) bool {
	return r.Status == 403 && strings.Contains(r.Body, "Daily amount limit exceeded")
}
