package fault

// kindWords names the kinds in the order of their constants. The words stand in logs and alarms: change none.
var kindWords = [...]string{
	Internal:          "internal",
	NoRoute:           "no route",
	TooLarge:          "too large",
	NoCredentials:     "no credentials",
	BadCredentials:    "bad credentials",
	MediaType:         "media type",
	Missing:           "missing",
	Invalid:           "invalid",
	NotAllowed:        "not allowed",
	Address:           "address",
	PathAddress:       "path address",
	TooLong:           "too long",
	Forbidden:         "forbidden",
	Throttled:         "throttled",
	OverLimit:         "over limit",
	NotFound:          "not found",
	Duplicate:         "duplicate",
	InFlight:          "in flight",
	OperatorRefusedUs: "operator refused us",
	OperatorDown:      "operator down",
	OutcomeUnknown:    "outcome unknown",
	OperatorError:     "operator error",
}

// Kinds lists every kind in the order of its constant, so that tables over kinds can be tested for completeness.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindWords))
	for i := range kinds {
		kinds[i] = Kind(i)
	}
	return kinds
}

// String names the kind by its word. A number that is no kind is "internal", as package oneapi answers it.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindWords) {
		return kindWords[Internal]
	}
	return kindWords[k]
}
