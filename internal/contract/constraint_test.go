package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"mobilegateway/internal/contract"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/market"
	"mobilegateway/shared/strictjson"
)

// part is one part of a body: a field, with its rules under the request's headers and without them.
type part struct {
	path       string
	schema     contract.Object
	equalsPath string // the path parameter that it must equal, "" for none
}

// parts lists the parts of a body that a schema has, parents before children. value decides between then and else.
func parts(t *testing.T, schema contract.Object, value any, at string) []part {
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
		found = append(found, parts(t, property, object[name], path)...)
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

// with gives a copy of a body with a candidate in the place of a part; false where its parent is no object.
func with(t *testing.T, body any, path string, candidate any) (contract.Object, bool) {
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

// difference is a rule of the code that a part's schema does not have, or the other way round.
type difference struct {
	path, why string
	is        func(candidate any) bool
}

// described are the differences that the document tells in words, because JSON Schema cannot.
var described = []difference{
	{"_url", "the scheme in capitals is taken as well", oneOfTexts("HTTPS://shop.example.com/")},
	{"notifyURL", "the scheme in capitals is taken as well", oneOfTexts("HTTPS://shop.example.com/")},
	{"notif_url", "the host is registered for the merchant", func(candidate any) bool {
		text, isText := candidate.(string)
		return isText && !strings.Contains(text, "shop.example.com")
	}},
}

func oneOfTexts(texts ...string) func(any) bool {
	return func(candidate any) bool {
		text, isText := candidate.(string)
		return isText && slices.Contains(texts, text)
	}
}

// trial is an example whose parts are tried.
type trial struct {
	operation contract.Operation
	example   contract.Example
	schema    *contract.Schema // of the body under the example's headers
}

// send sends the example with another body, and says whether it was accepted.
func (r *trial) send(t *testing.T, body contract.Object, p part) operationtest.Response {
	t.Helper()
	g := open(t)
	if strings.HasPrefix(r.operation.Path, "/callbacks/") {
		g.stock()
	}
	c := g.example(r.operation, contract.Example{Value: body, Headers: r.example.Headers})
	if p.equalsPath == "senderAddress" {
		if text, isText := body["outboundSMSMessageRequest"].(contract.Object)["senderAddress"].(string); isText && text != "" && !strings.ContainsFunc(text, unicode.IsControl) {
			c.param["senderAddress"] = text
		}
	}
	return g.do(c)
}

// try puts a candidate in the place of a part, and holds the code's verdict against the document's.
func (r *trial) try(t *testing.T, p part, candidate any) (refused bool) {
	t.Helper()
	body, possible := with(t, r.example.Value, p.path, candidate)
	if !possible {
		return false
	}
	wrong := r.schema.Validate(body)
	if text, isText := candidate.(string); p.equalsPath == "orderId" && isText && text != orderID {
		wrong = fmt.Errorf("it is not the path's")
	}
	answer := r.send(t, body, p)
	accepted := answer.Status < 300
	inWords := slices.ContainsFunc(described, func(d difference) bool { return strings.HasSuffix(p.path, d.path) && d.is(candidate) })
	switch {
	case inWords && accepted == (wrong != nil):
		return false
	case accepted && wrong != nil:
		t.Errorf("%s = %s is accepted, and the document says: %v", p.path, show(candidate), wrong)
	case !accepted && wrong == nil:
		t.Errorf("%s = %s is refused (%d %s), and the document has no such rule", p.path, show(candidate), answer.Status, answer.Body)
	case !accepted && !names(t, answer, p.path, candidate):
		t.Errorf("%s = %s is refused by %d %s, which does not name it", p.path, show(candidate), answer.Status, answer.Body)
	}
	return !accepted
}

func show(candidate any) string {
	text := fmt.Sprintf("%#v", candidate)
	if len(text) > 120 {
		text = text[:60] + "..." + text[len(text)-30:] + fmt.Sprintf(" (%d)", len(text))
	}
	return text
}

const receiptPart = "outboundSMSMessageRequest.receiptRequest"

// names tells whether an error speaks of a part: by its path, by that of a part inside it or around it, or by its value.
func names(t *testing.T, answer operationtest.Response, path string, candidate any) bool {
	t.Helper()
	e, isError := answer.Exception()
	if !isError || answer.Status >= 500 || len(e.Variables) == 0 {
		return false
	}
	named := e.Variables[0]
	switch e.MessageID {
	case "SVC0280":
		return named == "160"
	case "SVC0004":
		text, isText := candidate.(string)
		return strings.HasSuffix(path, "ddress") && (!isText || text == "" || (named != "" && strings.HasPrefix(text, named)) || strings.ContainsFunc(text, unicode.IsControl))
	}
	switch path + " " + named {
	case receiptPart + ".notifyURL " + receiptPart + ".callbackData": // valid only with notifyURL
		return true
	case "payload status": // without a payload the fields stand at the root
		return true
	}
	return named == path || strings.HasPrefix(named, path+".") || strings.HasPrefix(path, named+".")
}

// TestBodies tries every part of every example of a request with every candidate: the code refuses what the document
// refuses, naming the part, and accepts what the document accepts.
func TestBodies(t *testing.T) {
	for _, o := range operations(t) {
		for name, body := range o.Body {
			if name != "application/json" {
				continue
			}
			for name, example := range body.Examples {
				r := newTrial(t, o, example)
				for _, p := range parts(t, contract.Under(body.Schema, nil, ownWords()), example.Value, "") {
					t.Run(o.ID+"/"+name+"/"+p.path, func(t *testing.T) { r.part(t, p, p.schema) })
				}
			}
		}
	}
}

// ownWords are the provisioned values that narrow a text; not the country, which decides between rules.
func ownWords() map[string][]string {
	own := maps.Clone(provisioned)
	delete(own, "home_mco")
	return own
}

func newTrial(t *testing.T, o contract.Operation, example contract.Example) *trial {
	t.Helper()
	schema := contract.Under(o.Body["application/json"].Schema, headersOf(o, example), provisioned)
	return &trial{operation: o, example: example, schema: compiled(t, schema)}
}

// TestCountries tries the parts whose rules hang on a header under each of the header's values.
func TestCountries(t *testing.T) {
	for _, o := range operations(t) {
		body, has := o.Body["application/json"]
		name := map[string]string{"charge": "charge", "pay": "tpe", "sendSms": "plain"}[o.ID]
		if !has || name == "" {
			continue
		}
		for _, p := range parts(t, body.Schema, body.Examples[name].Value, "") {
			rule, has := p.schema["x-by-header"].(contract.Object)
			if !has || rule["name"] == "channel" {
				continue
			}
			header := rule["name"].(string)
			for value, chosen := range rule["schemas"].(contract.Object) {
				r := newTrial(t, o, of(t, body.Examples[name], header, value))
				t.Run(o.ID+"/"+p.path+"/"+value, func(t *testing.T) { r.part(t, p, chosen.(contract.Object)) })
			}
			for _, q := range o.Parameters {
				if q.Name == header && len(asList(q.Schema["enum"])) != len(rule["schemas"].(contract.Object)) {
					t.Errorf("%s: %s has other values than the header %s", o.ID, p.path, header)
				}
			}
		}
	}
}

// of gives an example the values of another country.
func of(t *testing.T, example contract.Example, header, value string) contract.Example {
	t.Helper()
	country, found := market.ByMCO(value)
	if !found {
		country, _ = market.ByAlpha2(value)
	}
	numbers := map[string]string{"CI": "0700002000", "CD": "812342000", "CM": "612342000", "SN": "771232000", "TN": "20002000", "BF": "70002000"}
	changed := contract.Example{Value: example.Value, Headers: maps.Clone(example.Headers)}
	changed.Headers[header] = value
	const information = "amountTransaction.paymentAmount.chargingInformation."
	for path, value := range map[string]string{
		"currency": country.Currency, "amount": "1", "user_msisdn": "+" + country.CallingCode + numbers[country.Alpha2],
		information + "currency": country.Currency, information + "amount": "1",
		"outboundSMSMessageRequest.senderAddress": country.SenderPrefix() + "0000",
	} {
		if _, there := with(t, changed.Value, path, value); there && has(changed.Value, path) {
			changed.Value, _ = with(t, changed.Value, path, value)
		}
	}
	return changed
}

// has tells whether a body has a part.
func has(body any, path string) bool {
	for key := range strings.SplitSeq(path, ".") {
		object, _ := body.(contract.Object)
		if body = object[key]; body == nil {
			return false
		}
	}
	return true
}

// part tries one part with every candidate. Each keyword of the part's own schema must have had a candidate that broke it
// alone and was refused.
func (r *trial) part(t *testing.T, p part, schema contract.Object) {
	t.Helper()
	if _, possible := with(t, r.example.Value, p.path, absent{}); !possible {
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
			return // as many bytes are as many characters at least
		}
		if whole, lighter := compiled(t, schema), compiled(t, without); !slices.ContainsFunc(refused, func(candidate any) bool {
			_, isAbsent := candidate.(absent)
			return !isAbsent && whole.Validate(candidate) != nil && lighter.Validate(candidate) == nil
		}) {
			t.Errorf("%s: no candidate breaks %s alone", p.path, where)
		}
	})
}

// rules are the keywords that a candidate can break by itself.
var rules = []string{"type", "enum", "const", "not", "minLength", "maxLength", "pattern", "minItems", "maxItems", "items", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "x-max-bytes"}

// eachRule visits the schema of a part without one of its rules. Fields of objects are parts of their own.
func eachRule(schema contract.Object, visit func(where string, without contract.Object)) {
	_, words := schema["enum"]
	_, word := schema["const"]
	for _, rule := range rules {
		if rule == "type" && (words || word) {
			continue // it says what the words are, for generators: no candidate breaks it alone
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
