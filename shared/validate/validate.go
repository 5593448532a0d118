// Package validate checks headers and body fields that have the same rules in several operations.
//
// Each check records its fault in the reader of the body, so that the first fault in the order of the specification is
// the one in the response. Its invariant: a check records a fault or returns a value that obeys its rule.
package validate

import (
	"math"
	"slices"
	"strings"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/strictjson"
)

// maxHeaderBytes is the longest valid header value, in bytes.
const maxHeaderBytes = 2048

// AnyLength is the limit of a text that is checked otherwise. The limit of the whole body bounds it.
const AnyLength = math.MaxInt

// headerMCO names the operator and the country of a charge.
const headerMCO = "X-Operator-MCO"

// RequiredHeader reads a required header. It records MissingPart if the header is absent or empty. It records
// InvalidPart if the header is repeated with different values, is too long or is not printable ASCII.
func RequiredHeader(req *apigw.Request, doc *strictjson.Reader, name string) string {
	value := OptionalHeader(req, doc, name)
	if value == "" {
		doc.RecordFault(fault.ForPart(fault.MissingPart, name))
	}
	return value
}

// OptionalHeader reads a header that may be absent, otherwise by the same rules.
func OptionalHeader(req *apigw.Request, doc *strictjson.Reader, name string) string {
	value := req.Header(name)
	switch {
	case req.HasConflictingHeader(name):
		doc.RecordFault(fault.BrokenRule(name, logsafe.New("two different values")))
	case len(value) > maxHeaderBytes:
		doc.RecordFault(fault.BrokenRule(name, logsafe.New("too long")))
	case strings.ContainsFunc(value, isUnprintable):
		doc.RecordFault(fault.BrokenRule(name, logsafe.New("not printable ASCII")))
	}
	return value
}

func isUnprintable(r rune) bool { return r < ' ' || r > '~' }

// RequiredHeaderOneOf reads a required header that has a known set of valid values.
func RequiredHeaderOneOf(req *apigw.Request, doc *strictjson.Reader, name string, valid ...string) string {
	value := RequiredHeader(req, doc, name)
	OneOf(doc, name, value, valid)
	return value
}

// ChargeCountry returns the country of a charge: the one of X-Operator-MCO, else the merchant's default (decision
// "charge-country"). It records ValueNotAllowed with the valid codes for an unknown one (decision "sms-mco").
func ChargeCountry(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile) market.Country {
	code := OptionalHeader(req, doc, headerMCO)
	if code == "" {
		home, _ := market.ByAlpha2(profile.DefaultCountry())
		return home
	}
	country, found := market.ByMCO(code)
	if !found {
		OneOf(doc, headerMCO, code, market.MCOs())
	}
	return country
}

// RequiredOneOf reads a required field that has a known set of valid values, one if the specification or the deployment
// fixes it (decision "constants"). It records MissingPart for an absent field and ValueNotAllowed for any other text.
func RequiredOneOf(doc *strictjson.Reader, path string, valid ...string) string {
	value := doc.Text(path, AnyLength)
	OneOf(doc, path, value, valid)
	return value
}

// OneOf records ValueNotAllowed with the valid values if a value is not one of them. The fault of an empty value is
// already recorded.
func OneOf(doc *strictjson.Reader, part, value string, valid []string) {
	if value != "" && !slices.Contains(valid, value) {
		doc.RecordFault(fault.NotAllowed(part, valid))
	}
}
