package fault

// kindNames names the kinds in the order of their constants. Logs and alarms contain the names: change none.
var kindNames = [...]string{
	Internal:             "internal",
	RouteNotFound:        "no route",
	BodyTooLarge:         "too large",
	MissingCredentials:   "no credentials",
	InvalidCredentials:   "bad credentials",
	UnsupportedMediaType: "media type",
	MissingPart:          "missing",
	InvalidPart:          "invalid",
	ValueNotAllowed:      "not allowed",
	InvalidAddress:       "address",
	InvalidPathAddress:   "path address",
	MessageTooLong:       "too long",
	Forbidden:            "forbidden",
	RateLimited:          "throttled",
	DailyLimitExceeded:   "over limit",
	NotFound:             "not found",
	DuplicateKey:         "duplicate",
	RequestInProgress:    "in flight",
	IntegrationRejected:  "operator refused us",
	OperatorUnavailable:  "operator down",
	OutcomeUnknown:       "outcome unknown",
	OperatorError:        "operator error",
}

// Kinds lists every kind in the order of its constant, so that tables over kinds can be tested for completeness.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindNames))
	for i := range kinds {
		kinds[i] = Kind(i)
	}
	return kinds
}

// String names the kind. An unknown number is "internal", which is also how package oneapi renders it.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return kindNames[Internal]
	}
	return kindNames[k]
}
