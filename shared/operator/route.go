package operator

import (
	"slices"
	"strings"
)

// Route sends new transactions of an operator to an account of a platform (decision "routes"). The JSON tags are the
// form in the operators' credentials.
type Route struct {
	Country   string `json:"country"`           // alpha-2
	Operation string `json:"operation"`         // charge, pay or sms
	Channel   string `json:"channel,omitempty"` // payments: web, tpe or ussd; "" for every channel of the platform
	To        string `json:"to"`                // "platform/account"
}

// Fits reports whether the route is for a service. A route without a channel fits the channels that its platform has.
func (r Route) Fits(s Service) bool {
	fits := r.Country == s.Country && r.Operation == s.Operation
	if r.Channel != "" || s.Operation != AccountPay {
		return fits && r.Channel == s.Channel
	}
	row, _ := FindCapabilities(ParsePin(r.To, "").Platform)
	return fits && slices.Contains(row.Channels, s.Channel)
}

// Routes are a deployment's routes by the operator's name, and the platforms that have accounts.
type Routes struct {
	ByOperator map[string][]Route
	Platforms  []string
}

// Selection is the platform and the account of a new transaction.
type Selection struct {
	Capabilities
	Operator string
	// Account is what the entry is pinned to: "platform/id" of a route, "" for the current account of the operator's
	// own platform.
	Account string
}

// Select returns the platform and the account that serve a service; false if none does. Without a route it is the
// platform with the operator's own name. An operator with routes needs credentials of that platform too.
func (r Routes) Select(s Service) (Selection, bool) {
	s.Operator = strings.ToLower(s.Operator)
	routes := r.ByOperator[s.Operator]
	for _, route := range routes {
		pin := ParsePin(route.To, "")
		row, known := FindCapabilities(pin.Platform)
		if route.Fits(s) && known && pin.Account != "" && row.Offers(s) {
			return Selection{row, s.Operator, route.To}, true
		}
	}
	row, known := FindCapabilities(s.Operator)
	if !known || !row.Offers(s) || len(routes) > 0 && !slices.Contains(r.Platforms, s.Operator) {
		return Selection{}, false
	}
	return Selection{row, s.Operator, ""}, true
}

// Operators lists those of the names that have a platform for the operation in a country, "" for any country, on any
// channel.
func (r Routes) Operators(names []string, country, operation string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(allCountries, func(code string) bool {
			return (country == "" || code == country) && len(r.Channels(name, code, operation)) > 0
		})
	})
}

// Channels lists the channels on which an operator has a platform for the operation in a country. For an operation
// without channels it is one empty text.
func (r Routes) Channels(operatorName, country, operation string) []string {
	channels := allChannels
	if operation != AccountPay {
		channels = []string{""}
	}
	return slices.DeleteFunc(slices.Clone(channels), func(channel string) bool {
		_, found := r.Select(Service{operatorName, country, operation, channel})
		return !found
	})
}
