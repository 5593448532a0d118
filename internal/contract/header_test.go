package contract_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/contract"
)

// TestHeaders tries every header of every operation with every text, and without it: the code refuses what the document
// refuses, naming the header, and accepts what the document accepts. A header without characters counts as not sent.
func TestHeaders(t *testing.T) {
	for _, o := range operations(t) {
		body, has := o.Body["application/json"]
		if !has {
			continue
		}
		for _, p := range o.Parameters {
			if p.In == "header" {
				name := slices.Sorted(maps.Keys(body.Examples))[0]
				t.Run(o.ID+"/"+p.Name, func(t *testing.T) { header(t, o, p, body.Examples[name]) })
			}
		}
	}
}

func header(t *testing.T, o contract.Operation, p contract.Parameter, example contract.Example) {
	t.Helper()
	bound := contract.Under(p.Schema, nil, provisioned)
	schema := compiled(t, bound)
	refused := map[string]bool{}
	byHeader := len(asList(p.Schema["enum"])) > 1
	for _, candidate := range candidates(p.Name, p.Schema) {
		text, isText := candidate.(string)
		_, none := candidate.(absent)
		if !isText && !none {
			continue // a header is a text
		}
		text = strings.TrimSpace(text)
		g := open(t)
		c := g.example(o, example)
		if text == "" {
			delete(c.header, strings.ToLower(p.Name))
		} else {
			c.header[strings.ToLower(p.Name)] = text
		}
		wrong := (text == "" && p.Required) || (text != "" && schema.Validate(text) != nil)
		inBody := false
		if byHeader { // the body's rules may be others now
			inBody = compiled(t, contract.Under(o.Body["application/json"].Schema, c.header, provisioned)).Validate(example.Value) != nil
		}
		answer := g.do(c)
		if accepted := answer.Status < 300; accepted == (wrong || inBody) {
			t.Errorf("%q is answered %d %s", show(text), answer.Status, answer.Body)
		}
		if !wrong {
			continue
		}
		refused[text] = true
		e, _ := answer.Exception()
		ofAddress := e.MessageID == "SVC0004" && p.Name == "X-Operator-MCO" && e.Variables[0] == sender
		if len(e.Variables) == 0 || (e.Variables[0] != p.Name && !ofAddress) {
			t.Errorf("%q is refused by %d %s, which does not name it", show(text), answer.Status, answer.Body)
		}
	}
	delete(bound, "type") // a header is a text
	eachRule(bound, func(where string, without contract.Object) {
		lighter := compiled(t, without)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(refused)), func(text string) bool { return text != "" && lighter.Validate(text) == nil }) {
			t.Errorf("no candidate breaks %s alone", where)
		}
	})
}

// TestCredentials takes the credentials away, and gives wrong ones: what has a security scheme answers 401 and nothing
// else does.
func TestCredentials(t *testing.T) {
	contracted := checker(t)
	for _, o := range operations(t) {
		secured := true
		if own, has := o.Raw["security"]; has {
			secured = len(asList(own)) > 0
		}
		for _, credentials := range []string{"", "Bearer nobody", "Basic bm9ib2R5OnB3", "Digest x"} {
			g := open(t)
			if !secured {
				g.stock()
			}
			example := contract.Example{Value: contract.Object{}}
			for _, body := range o.Body {
				example = body.Examples[slices.Sorted(maps.Keys(body.Examples))[0]]
			}
			c := g.example(o, example)
			c.header["authorization"] = credentials
			answer := g.do(c)
			checked(t, contracted, o, answer)
			if (answer.Status == http.StatusUnauthorized) != secured {
				t.Errorf("%s with %q: %d", o.ID, credentials, answer.Status)
			}
		}
	}
}

// TestPaths tries the path parameters: what the document does not allow is 404, and so is what nobody has.
func TestPaths(t *testing.T) {
	contracted := checker(t)
	for _, o := range operations(t) {
		for _, p := range o.Parameters {
			if p.In != "path" {
				continue
			}
			for _, text := range append([]string{strings.Repeat("x", 256)}, texts...) {
				if text == "" {
					continue // another route
				}
				g := open(t)
				example := contract.Example{}
				for _, body := range o.Body {
					example = body.Examples[slices.Sorted(maps.Keys(body.Examples))[0]]
				}
				c := g.example(o, example)
				if c.param[p.Name] == text {
					continue
				}
				c.param[p.Name] = text
				answer := g.do(c)
				checked(t, contracted, o, answer)
				if answer.Status != http.StatusNotFound {
					t.Errorf("%s: %s %q is answered %d %s", o.ID, p.Name, text, answer.Status, answer.Body)
				}
			}
		}
	}
}

// TestGrant tries the token endpoint's form and query.
func TestGrant(t *testing.T) {
	contracted := checker(t)
	var o contract.Operation
	for _, candidate := range operations(t) {
		if candidate.ID == "issueToken" {
			o = candidate
		}
	}
	cases := map[string]struct {
		form   string
		query  map[string]string
		change func(*gateway, *call)
		status int
	}{
		"in the form":                 {form: "grant_type=client_credentials", status: 200},
		"in the query":                {query: map[string]string{"grant_type": "client_credentials"}, status: 200},
		"in both":                     {form: "grant_type=client_credentials", query: map[string]string{"grant_type": "client_credentials"}, status: 200},
		"empty in the query":          {form: "grant_type=client_credentials", query: map[string]string{"grant_type": ""}, status: 200},
		"empty in the query alone":    {form: "x=y", query: map[string]string{"grant_type": ""}, status: 400},
		"in neither":                  {form: "x=y", status: 400},
		"another in the form":         {form: "grant_type=password", status: 400},
		"another in the query":        {query: map[string]string{"grant_type": "password"}, status: 400},
		"two":                         {form: "grant_type=client_credentials", query: map[string]string{"grant_type": "password"}, status: 400},
		"the client's id in the form": {form: "grant_type=client_credentials&client_id=other", status: 400},
		"both ways":                   {form: "grant_type=client_credentials&client_id=x&client_secret=y", status: 400},
		"JSON": {form: `{"grant_type":"client_credentials"}`, status: 400, change: func(_ *gateway, c *call) {
			c.header["content-type"] = "application/json"
		}},
		"the client in the form": {status: 200, change: func(g *gateway, c *call) {
			delete(c.header, "authorization")
			c.body = "grant_type=client_credentials&client_id=" + g.client.ID + "&client_secret=" + g.password
		}},
	}
	for name, given := range cases {
		t.Run(name, func(t *testing.T) {
			g := open(t)
			c := g.example(o, o.Body["application/x-www-form-urlencoded"].Examples["token"])
			c.body, c.query = given.form, given.query
			if given.change != nil {
				given.change(g, c)
			}
			answer := g.do(c)
			checked(t, contracted, o, answer)
			if answer.Status != given.status {
				t.Errorf("%d %s, want %d", answer.Status, answer.Body, given.status)
			}
		})
	}
}
