package operation_test

import (
	"strings"
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/strictjson"
)

func mustParse(t testing.TB, body string) *strictjson.Reader {
	t.Helper()
	doc, err := strictjson.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// assertFault checks the first fault of a document; kind 0 stands for none, for no rule here is an internal fault.
func assertFault(t testing.TB, doc *strictjson.Reader, kind fault.Kind, part, value string) {
	t.Helper()
	f := doc.FirstFault()
	if f == nil {
		f = &fault.Fault{}
	}
	if f.Kind != kind || f.Part != part || f.Value != value {
		t.Errorf("fault %s in %q, value %q; want %s in %q, value %q", f.Kind, f.Part, f.Value, kind, part, value)
	}
}

// decision "authentication": gw-token and gw-alias are required and passed on unchanged.
func TestHeader(t *testing.T) {
	cases := []struct {
		name, value, read string
		kind              fault.Kind
	}{
		{"plain", "abc", "abc", 0},
		{"printable punctuation", `a b"c\<>~`, `a b"c\<>~`, 0},
		{"absent", "", "", fault.MissingPart},
		{"spaces alone", "  ", "", fault.MissingPart},
		{"as long as may be", strings.Repeat("x", 2048), strings.Repeat("x", 2048), 0},
		{"too long", strings.Repeat("x", 2049), strings.Repeat("x", 2049), fault.InvalidPart},
		{"a control character", "a\x00b", "a\x00b", fault.InvalidPart},
		{"a line end within", "a\r\nb", "a\r\nb", fault.InvalidPart},
		{"delete", "a\x7f", "a\x7f", fault.InvalidPart},
		{"other scripts", "é", "é", fault.InvalidPart},
		{"not UTF-8", "\xff", "\xff", fault.InvalidPart},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req, doc := &apigw.Request{}, mustParse(t, "{}")
			if c.name != "absent" {
				req.SetHeader("GW-Token", c.value)
			}
			if got := operation.RequiredHeader(req, doc, "gw-token"); got != c.read {
				t.Errorf("read %q", got)
			}
			part := "gw-token"
			if c.kind == 0 {
				part = ""
			}
			assertFault(t, doc, c.kind, part, "")
		})
	}
}

func TestHeaderOneOf(t *testing.T) {
	req, doc := &apigw.Request{}, mustParse(t, "{}")
	req.SetHeader("channel", "fax")
	operation.RequiredHeaderOneOf(req, doc, "channel", "web", "tpe")
	assertFault(t, doc, fault.ValueNotAllowed, "channel", "web, tpe")
}

// decision "charge-country" and "sms-mco".
func TestChargeCountry(t *testing.T) {
	cases := []struct {
		name, mco, home, want string
		kind                  fault.Kind
	}{
		{"decision charge-country: none, the home country", "", "SN", "SN", 0},
		{"decision charge-country: none, the first country", "", "", "CI", 0},
		{"decision charge-country: another", "OTN", "", "TN", 0},
		{"decision sms-mco: ODC", "ODC", "", "CD", 0},
		{"decision sms-mco: OCD", "OCD", "", "CD", 0},
		{"unknown", "OXX", "", "", fault.ValueNotAllowed},
		{"alpha-2 alone", "CI", "", "", fault.ValueNotAllowed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req, doc, profile := &apigw.Request{}, mustParse(t, "{}"), operationtest.DemoProfile()
			req.SetHeader("X-Operator-MCO", c.mco)
			profile.HomeCountry = c.home
			if got := operation.ChargeCountry(req, doc, profile).Alpha2; got != c.want {
				t.Errorf("country %q, want %q", got, c.want)
			}
			if c.kind != 0 {
				assertFault(t, doc, c.kind, "X-Operator-MCO", strings.Join(market.MCOs(), ", "))
			}
		})
	}
	t.Run("a required one that is absent", func(t *testing.T) {
		doc := mustParse(t, "{}")
		operation.CountryFromMCO(&apigw.Request{}, doc)
		assertFault(t, doc, fault.MissingPart, "X-Operator-MCO", "")
	})
}

// decision "constants".
func TestRequireConstant(t *testing.T) {
	cases := []struct {
		name, body, value string
		kind              fault.Kind
	}{
		{"the valid one", `{"a":"Charged"}`, "", 0},
		{"another case", `{"a":"charged"}`, "Charged", fault.ValueNotAllowed},
		{"a space more", `{"a":"Charged "}`, "Charged", fault.ValueNotAllowed},
		{"very long", `{"a":"` + strings.Repeat("x", 60000) + `"}`, "Charged", fault.ValueNotAllowed},
		{"absent", `{}`, "", fault.MissingPart},
		{"null", `{"a":null}`, "", fault.MissingPart},
		{"empty", `{"a":""}`, "", fault.InvalidPart},
		{"a number", `{"a":1}`, "", fault.InvalidPart},
	}
	for _, c := range cases {
		t.Run("decision constants: "+c.name, func(t *testing.T) {
			doc := mustParse(t, c.body)
			operation.RequireConstant(doc, "a", "Charged")
			part := "a"
			if c.kind == 0 {
				part = ""
			}
			assertFault(t, doc, c.kind, part, c.value)
		})
	}
}

// decision "charge-success" and "sms-success".
func TestURLs(t *testing.T) {
	if got := operation.ChargeURL("https://b/s", "ID"); got != "https://b/s/payment/v1/acr%3AOperatorAPIToken/transactions/amount/ID" {
		t.Errorf("decision charge-success: %s", got)
	}
	if got := operation.MessageURL("https://b", "tel:+2250707", "ID"); got != "https://b/smsmessaging/v1/outbound/tel%3A%2B2250707/requests/ID/deliveryInfos" {
		t.Errorf("decision sms-success: %s", got)
	}
}
