package operation

import (
	"strings"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/strictjson"
)

// maxHeaderBytes is the longest header value read, in bytes.
const maxHeaderBytes = 2048

// RequiredHeader reads a required header: Missing where it is absent or empty; Invalid where it stands twice with different
// values, is too long or holds anything but printable ASCII. The first fault is recorded in doc, ahead of the body's.
func RequiredHeader(req *apigw.Request, doc *strictjson.Reader, name string) string {
	value := OptionalHeader(req, doc, name)
	if value == "" {
		doc.RecordFault(fault.ForPart(fault.MissingPart, name))
	}
	return value
}

// OptionalHeader reads a header that may be absent, under the same rules.
func OptionalHeader(req *apigw.Request, doc *strictjson.Reader, name string) string {
	value := req.Header(name)
	if req.HasConflictingHeader(name) || len(value) > maxHeaderBytes || strings.ContainsFunc(value, isUnprintable) {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, name))
	}
	return value
}

func isUnprintable(r rune) bool { return r < ' ' || r > '~' }

// RequiredHeaderOneOf reads a required header whose value must be one of a list.
func RequiredHeaderOneOf(req *apigw.Request, doc *strictjson.Reader, name string, valid ...string) string {
	value := RequiredHeader(req, doc, name)
	CheckOneOf(doc, name, value, valid)
	return value
}

// ChargeCountry is the country of a charge: the one that X-Operator-MCO names, else the merchant's own
// (decision "charge-country").
func ChargeCountry(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile) market.Country {
	if OptionalHeader(req, doc, "X-Operator-MCO") == "" {
		home, _ := market.ByAlpha2(profile.DefaultCountry())
		return home
	}
	return CountryFromMCO(req, doc)
}

// CountryFromMCO is the country that the required header X-Operator-MCO names (decision "sms-mco"); NotAllowed with the table's
// values where it names none.
func CountryFromMCO(req *apigw.Request, doc *strictjson.Reader) market.Country {
	code := RequiredHeader(req, doc, "X-Operator-MCO")
	country, found := market.ByMCO(code)
	if !found && code != "" {
		doc.RecordFault(notAllowedFault("X-Operator-MCO", market.MCOs()))
	}
	return country
}

func notAllowedFault(part string, valid []string) *fault.Fault {
	return &fault.Fault{Kind: fault.ValueNotAllowed, Part: part, Value: strings.Join(valid, ", ")}
}
