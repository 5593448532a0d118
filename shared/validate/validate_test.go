package validate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/validate"
)

func mustParse(t testing.TB, body string) *strictjson.Reader {
	t.Helper()
	doc, err := strictjson.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// assertFault compares the kind, part and value of the first fault of a document; kind 0 is for no fault.
func assertFault(t testing.TB, doc *strictjson.Reader, kind fault.Kind, part, value string) {
	t.Helper()
	type facts struct{ Kind, Part, Value string }
	var got, want facts
	if f := doc.FirstFault(); f != nil {
		got = facts{f.Kind.String(), f.Part, f.Value}
	}
	if kind != 0 {
		want = facts{kind.String(), part, value}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first fault (-want +got):\n%s", diff)
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
		{"only spaces", "  ", "", fault.MissingPart},
		{"of the maximum length", strings.Repeat("x", 2048), strings.Repeat("x", 2048), 0},
		{"too long", strings.Repeat("x", 2049), strings.Repeat("x", 2049), fault.InvalidPart},
		{"a control character", "a\x00b", "a\x00b", fault.InvalidPart},
		{"a line end inside", "a\r\nb", "a\r\nb", fault.InvalidPart},
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
			if got := validate.RequiredHeader(req, doc, "gw-token"); got != c.read {
				t.Errorf("read %q, want %q", got, c.read)
			}
			assertFault(t, doc, c.kind, "gw-token", "")
		})
	}
}

func TestHeaderOneOf(t *testing.T) {
	req, doc := &apigw.Request{}, mustParse(t, "{}")
	req.SetHeader("channel", "fax")
	validate.RequiredHeaderOneOf(req, doc, "channel", "web", "tpe")
	assertFault(t, doc, fault.ValueNotAllowed, "channel", "web, tpe")
}

// decision "charge-country" and "sms-mco".
func TestChargeCountry(t *testing.T) {
	cases := []struct {
		name, mco, home, want string
		kind                  fault.Kind
	}{
		{"decision charge-country: absent, the home country", "", "SN", "SN", 0},
		{"decision charge-country: absent, the first country", "", "", "CI", 0},
		{"decision charge-country: another country", "OTN", "", "TN", 0},
		{"decision sms-mco: ODC", "ODC", "", "CD", 0},
		{"decision sms-mco: OCD", "OCD", "", "CD", 0},
		{"unknown", "OXX", "", "", fault.ValueNotAllowed},
		{"only alpha-2", "CI", "", "", fault.ValueNotAllowed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req, doc, profile := &apigw.Request{}, mustParse(t, "{}"), operationtest.DemoProfile()
			req.SetHeader("X-Operator-MCO", c.mco)
			profile.HomeCountry = c.home
			if got := validate.ChargeCountry(req, doc, profile).Alpha2; got != c.want {
				t.Errorf("country %q, want %q", got, c.want)
			}
			assertFault(t, doc, c.kind, "X-Operator-MCO", strings.Join(market.MCOs(), ", "))
		})
	}
}

// decision "constants".
func TestRequiredOneOf(t *testing.T) {
	cases := []struct {
		name, body, value string
		kind              fault.Kind
	}{
		{"the valid value", `{"a":"Charged"}`, "", 0},
		{"another case", `{"a":"charged"}`, "Charged", fault.ValueNotAllowed},
		{"an extra space", `{"a":"Charged "}`, "Charged", fault.ValueNotAllowed},
		{"very long", `{"a":"` + strings.Repeat("x", 60000) + `"}`, "Charged", fault.ValueNotAllowed},
		{"absent", `{}`, "", fault.MissingPart},
		{"null", `{"a":null}`, "", fault.MissingPart},
		{"empty", `{"a":""}`, "", fault.InvalidPart},
		{"a number", `{"a":1}`, "", fault.InvalidPart},
	}
	for _, c := range cases {
		t.Run("decision constants: "+c.name, func(t *testing.T) {
			doc := mustParse(t, c.body)
			validate.RequiredOneOf(doc, "a", "Charged")
			assertFault(t, doc, c.kind, "a", c.value)
		})
	}
}
