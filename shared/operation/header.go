package operation

import (
	"strings"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/strictjson"
)

// maxHeader is the longest header value read, in bytes.
const maxHeader = 2048

// Header reads a required header: Missing where it is absent or empty; Invalid where it stands twice with different
// values, is too long or holds anything but printable ASCII. The first fault is recorded in doc, ahead of the body's.
func Header(req *apigw.Request, doc *strictjson.Reader, name string) string {
	value := OptionalHeader(req, doc, name)
	if value == "" {
		doc.Fail(fault.In(fault.Missing, name))
	}
	return value
}

// OptionalHeader reads a header that may be absent, under the same rules.
func OptionalHeader(req *apigw.Request, doc *strictjson.Reader, name string) string {
	value := req.Header(name)
	if req.HeaderRepeated(name) || len(value) > maxHeader || strings.ContainsFunc(value, notPrintable) {
		doc.Fail(fault.In(fault.Invalid, name))
	}
	return value
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

// HeaderOneOf reads a required header whose value must be one of a list.
func HeaderOneOf(req *apigw.Request, doc *strictjson.Reader, name string, valid ...string) string {
	value := Header(req, doc, name)
	OneOf(doc, name, value, valid)
	return value
}

// HomeOrMCO is the country of a charge: the one that X-Operator-MCO names, else the merchant's own
// (decision "charge-country").
func HomeOrMCO(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile) market.Country {
	if OptionalHeader(req, doc, "X-Operator-MCO") == "" {
		home, _ := market.ByAlpha2(profile.Home())
		return home
	}
	return MCO(req, doc)
}

// MCO is the country that the required header X-Operator-MCO names (decision "sms-mco"); NotAllowed with the table's
// values where it names none.
func MCO(req *apigw.Request, doc *strictjson.Reader) market.Country {
	code := Header(req, doc, "X-Operator-MCO")
	country, found := market.ByMCO(code)
	if !found && code != "" {
		doc.Fail(notAllowed("X-Operator-MCO", market.MCOs()))
	}
	return country
}

func notAllowed(part string, valid []string) *fault.Fault {
	return &fault.Fault{Kind: fault.NotAllowed, Part: part, Value: strings.Join(valid, ", ")}
}
