package contract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"mobilegateway/proof/contract"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/market"
	"mobilegateway/shared/strictjson"
)

// part is one field of a body.
type part struct {
	path       string
	schema     contract.Object
	equalsPath string // the path parameter that the field must equal; "" for none
}

// listParts lists the fields that a schema has for a body, parents before children. The value decides between then and
// else.
func listParts(t *testing.T, schema contract.Object, value any, at string) []part {
	t.Helper()
	var found []part
	properties := contract.Object{}
	add := func(more contract.Object) {
		inner, _ := more["properties"].(contract.Object)
		for name, property := range inner {
			if _, known := properties[name]; !known {
				properties[name] = property
			}
		}
	}
	add(schema)
	if condition, has := schema["if"].(contract.Object); has {
		branch := "else"
		if compiled(t, condition).Validate(value) == nil {
			branch = "then"
		}
		more, _ := schema[branch].(contract.Object)
		add(more)
	}
	object, _ := value.(contract.Object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(contract.Object)
		path := strings.TrimPrefix(at+"."+name, ".")
		equals, _ := property["x-equals-path"].(string)
		found = append(found, part{path, property, equals})
		found = append(found, listParts(t, property, object[name], path)...)
	}
	return found
}

func compiled(t *testing.T, source contract.Object) *contract.Schema {
	t.Helper()
	schema, err := contract.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// replacePart returns a copy of a body in which a candidate replaces the field at a path.
// It returns false if the parent of the field is not an object.
func replacePart(t *testing.T, body any, path string, candidate any) (contract.Object, bool) {
	t.Helper()
	var copied contract.Object
	if err := json.Unmarshal(strictjson.Marshal(body), &copied); err != nil {
		t.Fatal(err)
	}
	at, keys := copied, strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next, isObject := at[key].(contract.Object)
		if !isObject {
			return nil, false
		}
		at = next
	}
	last := keys[len(keys)-1]
	if _, none := candidate.(absent); none {
		delete(at, last)
	} else {
		at[last] = candidate
	}
	return copied, true
}

// proseRule is a rule that the document states in words, because JSON Schema cannot express it.
type proseRule struct {
	path, why string
	applies   func(candidate any) bool
}

var proseRules = []proseRule{
	{"_url", "the scheme may have capitals", oneOfTexts("HTTPS://shop.example.com/")},
	{"notifyURL", "the scheme may have capitals", oneOfTexts("HTTPS://shop.example.com/")},
	{"notif_url", "the host is registered for the merchant", isAtUnregisteredHost},
	{"notifyURL", "the host is registered for the merchant", isAtUnregisteredHost},
}

func isAtUnregisteredHost(candidate any) bool {
	text, isText := candidate.(string)
	return isText && !strings.Contains(text, "shop.example.com")
}

func oneOfTexts(wanted ...string) func(any) bool {
	return func(candidate any) bool {
		text, isText := candidate.(string)
		return isText && slices.Contains(wanted, text)
	}
}

// trial sends an example with changed fields.
type trial struct {
	operation contract.Operation
	example   contract.Example
	schema    *contract.Schema // of the body under the example's headers
}

// send sends the example with another body and returns the response. The path follows the body's sender address.
func (r *trial) send(t *testing.T, body contract.Object, p part) operationtest.Response {
	t.Helper()
	g := newGatewayFor(t, r.operation)
	c := g.call(r.operation, contract.Example{Value: body, Headers: r.example.Headers})
	if p.equalsPath == "senderAddress" {
		address, isText := body["outboundSMSMessageRequest"].(contract.Object)["senderAddress"].(string)
		if isText && address != "" && !strings.ContainsFunc(address, unicode.IsControl) {
			c.param["senderAddress"] = address
		}
	}
	return g.send(c)
}

// try replaces a field by a candidate and compares the code's verdict with the document's. It returns whether the code
// refused the request.
func (r *trial) try(t *testing.T, p part, candidate any) (refused bool) {
	t.Helper()
	body, possible := replacePart(t, r.example.Value, p.path, candidate)
	if !possible {
		return false
	}
	wrong := r.schema.Validate(body)
	if text, isText := candidate.(string); p.equalsPath == "orderId" && isText && text != orderID {
		wrong = errors.New("it differs from the path")
	}
	response := r.send(t, body, p)
	accepted := response.Status < 300
	inWords := slices.ContainsFunc(proseRules, func(r proseRule) bool {
		return strings.HasSuffix(p.path, r.path) && r.applies(candidate)
	})
	switch {
	case inWords && accepted == (wrong != nil):
		return false
	case accepted && wrong != nil:
		t.Errorf("the code accepts %s = %s; the document refuses it: %v", p.path, quote(candidate), wrong)
	case !accepted && wrong == nil:
		t.Errorf("the code refuses %s = %s (%d %s); the document accepts it",
			p.path, quote(candidate), response.Status, response.Body)
	case !accepted && !namesPart(t, response, p.path, candidate):
		t.Errorf("the code refuses %s = %s by an error that does not name it: %d %s",
			p.path, quote(candidate), response.Status, response.Body)
	}
	return !accepted
}

func quote(candidate any) string {
	text := fmt.Sprintf("%#v", candidate)
	if len(text) > 120 {
		text = text[:60] + "..." + text[len(text)-30:] + fmt.Sprintf(" (%d)", len(text))
	}
	return text
}

const receiptPart = "outboundSMSMessageRequest.receiptRequest"

// namesPart reports whether an error names a field: by its path, by the path of a field inside or around it, or by its
// value.
func namesPart(t *testing.T, response operationtest.Response, path string, candidate any) bool {
	t.Helper()
	e, isError := response.Exception()
	if !isError || response.Status >= 500 || len(e.Variables) == 0 {
		return false
	}
	named := e.Variables[0]
	switch e.MessageID {
	case "SVC0280":
		return named == "160"
	case "SVC0004":
		text, isText := candidate.(string)
		named := !isText || text == "" || (named != "" && strings.HasPrefix(text, named)) ||
			strings.ContainsFunc(text, unicode.IsControl)
		return strings.HasSuffix(path, "ddress") && named
	}
	switch path + " " + named {
	case receiptPart + ".notifyURL " + receiptPart + ".callbackData": // valid only with notifyURL
		return true
	case "payload status": // without a payload the fields are at the root
		return true
	}
	return named == path || strings.HasPrefix(named, path+".") || strings.HasPrefix(path, named+".")
}

// TestBodyConstraints tries every candidate in every field of every example of a request.
// The code must accept what the document accepts. It must refuse the rest by an error that names the field.
func TestBodyConstraints(t *testing.T) {
	for _, o := range operations(t) {
		if strings.HasPrefix(o.Path, "/callbacks/") {
			continue // every body gets 200 (decision "unread-callbacks")
		}
		body := o.Body["application/json"]
		for name, example := range body.Examples {
			r := newTrial(t, o, example)
			schema := contract.ForRequest(body.Schema, nil, provisionedValues())
			for _, p := range listParts(t, schema, example.Value, "") {
				t.Run(o.ID+"/"+name+"/"+p.path, func(t *testing.T) { r.part(t, p, p.schema) })
			}
		}
	}
}

// provisionedValues returns the provisioned values that limit a string, without the country, which selects rules.
func provisionedValues() map[string][]string {
	own := maps.Clone(provisioned)
	delete(own, "home_mco")
	return own
}

func newTrial(t *testing.T, o contract.Operation, example contract.Example) *trial {
	t.Helper()
	schema := contract.ForRequest(o.Body["application/json"].Schema, headersOf(o, example), provisioned)
	return &trial{operation: o, example: example, schema: compiled(t, schema)}
}

// TestCountryConstraints tries the fields whose rules depend on a header, under each value of the header.
func TestCountryConstraints(t *testing.T) {
	for _, o := range operations(t) {
		body, has := o.Body["application/json"]
		name := map[string]string{"charge": "charge", "pay": "tpe", "sendSms": "plain"}[o.ID]
		if !has || name == "" {
			continue
		}
		for _, p := range listParts(t, body.Schema, body.Examples[name].Value, "") {
			rule, has := p.schema["x-by-header"].(contract.Object)
			if !has || rule["name"] == "channel" {
				continue
			}
			header := rule["name"].(string)
			for value, chosen := range rule["schemas"].(contract.Object) {
				r := newTrial(t, o, inCountry(t, body.Examples[name], header, value))
				t.Run(o.ID+"/"+p.path+"/"+value, func(t *testing.T) { r.part(t, p, chosen.(contract.Object)) })
			}
			for _, q := range o.Parameters {
				if q.Name == header && len(asList(q.Schema["enum"])) != len(rule["schemas"].(contract.Object)) {
					t.Errorf("%s: the rules of %s do not have the values of the header %s", o.ID, p.path, header)
				}
			}
		}
	}
}

// inCountry returns an example with the values of another country.
func inCountry(t *testing.T, example contract.Example, header, value string) contract.Example {
	t.Helper()
	country, found := market.ByMCO(value)
	if !found {
		country, _ = market.ByAlpha2(value)
	}
	numbers := map[string]string{
		"CI": "0700002000",
		"CD": "812342000",
		"CM": "612342000",
		"SN": "771232000",
		"TN": "20002000",
		"BF": "70002000",
	}
	changed := contract.Example{Value: example.Value, Headers: map[string]string{}}
	maps.Copy(changed.Headers, example.Headers)
	changed.Headers[header] = value
	const information = "amountTransaction.paymentAmount.chargingInformation."
	for path, value := range map[string]string{
		"currency": country.Currency, "amount": "1",
		"user_msisdn":            "+" + country.CallingCode + numbers[country.Alpha2],
		information + "currency": country.Currency, information + "amount": "1",
		"outboundSMSMessageRequest.senderAddress": country.SenderPrefix() + "0000",
	} {
		if _, there := replacePart(t, changed.Value, path, value); there && hasPart(changed.Value, path) {
			changed.Value, _ = replacePart(t, changed.Value, path, value)
		}
	}
	return changed
}

// hasPart reports whether a body has the field at a path.
func hasPart(body any, path string) bool {
	for key := range strings.SplitSeq(path, ".") {
		object, _ := body.(contract.Object)
		if body = object[key]; body == nil {
			return false
		}
	}
	return true
}

// part tries every candidate in one field. For each keyword of the field's schema, the code must have refused a
// candidate that breaks only this keyword.
func (r *trial) part(t *testing.T, p part, schema contract.Object) {
	t.Helper()
	if _, possible := replacePart(t, r.example.Value, p.path, absent{}); !possible {
		return
	}
	var refused []any
	for _, candidate := range candidates(p.path, p.schema) {
		if r.try(t, p, candidate) {
			refused = append(refused, candidate)
		}
	}
	eachRule(schema, func(where string, without contract.Object) {
		if _, bytes := schema["x-max-bytes"]; bytes && where == "maxLength" {
			return // a text has at least as many bytes as characters
		}
		whole, lighter := compiled(t, schema), compiled(t, without)
		breaksOnly := func(candidate any) bool {
			_, isAbsent := candidate.(absent)
			return !isAbsent && whole.Validate(candidate) != nil && lighter.Validate(candidate) == nil
		}
		if !slices.ContainsFunc(refused, breaksOnly) {
			t.Errorf("%s: no candidate breaks only %s: add one to candidates_test.go", p.path, where)
		}
	})
}

// rules lists the keywords that a candidate can break without another one.
var rules = []string{"type", "enum", "const", "not", "minLength", "maxLength", "pattern", "minItems", "maxItems",
	"items", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "x-max-bytes"}

// eachRule calls visit once per rule of a schema, with a copy of the schema without that rule.
// It does not enter the fields of objects.
func eachRule(schema contract.Object, visit func(where string, without contract.Object)) {
	_, words := schema["enum"]
	_, word := schema["const"]
	for _, rule := range rules {
		if rule == "type" && (words || word) {
			continue // the type is for generators; no candidate breaks only the type
		}
		if _, has := schema[rule]; has {
			without := maps.Clone(schema)
			delete(without, rule)
			visit(rule, without)
		}
	}
	for _, branch := range []string{"then", "else"} {
		if inner, has := schema[branch].(contract.Object); has {
			eachRule(inner, func(where string, lighter contract.Object) {
				without := maps.Clone(schema)
				without[branch] = lighter
				visit(branch+"/"+where, without)
			})
		}
	}
	for _, several := range []string{"oneOf", "anyOf", "allOf"} {
		for i, inner := range asList(schema[several]) {
			eachRule(inner.(contract.Object), func(where string, lighter contract.Object) {
				without, branches := maps.Clone(schema), slices.Clone(asList(schema[several]))
				branches[i] = lighter
				without[several] = branches
				visit(fmt.Sprintf("%s/%d/%s", several, i, where), without)
			})
		}
	}
}
