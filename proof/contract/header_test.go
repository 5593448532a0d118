package contract_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/contract"
)

// TestHeaderConstraints tries every text in every header of every operation, and leaves the header out.
// The code must accept what the document accepts. It must refuse the rest by an error that names the header.
// An empty header counts as absent.
func TestHeaderConstraints(t *testing.T) {
	for _, o := range operations(t) {
		if _, has := o.Body["application/json"]; !has {
			continue
		}
		for _, p := range o.Parameters {
			if p.In == "header" {
				t.Run(o.ID+"/"+p.Name, func(t *testing.T) { header(t, o, p, firstExample(o)) })
			}
		}
	}
}

// firstExample returns the first example of a request by name, or an empty one for a request without a body.
func firstExample(o contract.Operation) contract.Example {
	for _, body := range o.Body {
		return body.Examples[slices.Min(slices.Collect(maps.Keys(body.Examples)))]
	}
	return contract.Example{Value: contract.Object{}}
}

func header(t *testing.T, o contract.Operation, p contract.Parameter, example contract.Example) {
	t.Helper()
	bound := contract.ForRequest(p.Schema, nil, provisioned)
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
		g := newGateway(t)
		c := g.call(o, example)
		if text == "" {
			delete(c.header, strings.ToLower(p.Name))
		} else {
			c.header[strings.ToLower(p.Name)] = text
		}
		wrong := (text == "" && p.Required) || (text != "" && schema.Validate(text) != nil)
		inBody := false
		if byHeader { // the rules of the body depend on the header
			schema := contract.ForRequest(o.Body["application/json"].Schema, c.header, provisioned)
			inBody = compiled(t, schema).Validate(example.Value) != nil
		}
		response := g.send(c)
		if accepted := response.Status < 300; accepted == (wrong || inBody) {
			t.Errorf("the response to %q is %d %s", quote(text), response.Status, response.Body)
		}
		if !wrong {
			continue
		}
		refused[text] = true
		e, _ := response.Exception()
		ofAddress := e.MessageID == "SVC0004" && p.Name == "X-Operator-MCO" && e.Variables[0] == sender
		if len(e.Variables) == 0 || (e.Variables[0] != p.Name && !ofAddress) {
			t.Errorf("the code refuses %q by an error that does not name it: %d %s",
				quote(text), response.Status, response.Body)
		}
	}
	delete(bound, "type") // a header is a text
	eachRule(bound, func(where string, without contract.Object) {
		lighter := compiled(t, without)
		breaksOnly := func(text string) bool { return text != "" && lighter.Validate(text) == nil }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(refused)), breaksOnly) {
			t.Errorf("no candidate breaks only %s: add one to candidates_test.go", where)
		}
	})
}

// TestCredentials sends requests without credentials and with wrong ones.
// An operation with a security scheme must respond 401; the others must not.
func TestCredentials(t *testing.T) {
	contractChecker := checker(t)
	for _, o := range operations(t) {
		secured := true
		if own, has := o.Raw["security"]; has {
			secured = len(asList(own)) > 0
		}
		for _, credentials := range []string{"", "Bearer unknown", "Basic bm9ib2R5OnB3", "Digest x"} {
			g := newGateway(t)
			if !secured {
				g.seed()
			}
			c := g.call(o, firstExample(o))
			c.header["authorization"] = credentials
			response := g.send(c)
			checkResponse(t, contractChecker, o, response)
			if (response.Status == http.StatusUnauthorized) != secured {
				t.Errorf("%s with %q: %d", o.ID, credentials, response.Status)
			}
		}
	}
}

// TestPaths tries every text in the path parameters. An invalid or unknown value must be 404.
func TestPaths(t *testing.T) {
	contractChecker := checker(t)
	for _, o := range operations(t) {
		for _, p := range o.Parameters {
			if p.In != "path" {
				continue
			}
			for _, text := range append([]string{strings.Repeat("x", 256)}, textCandidates...) {
				if text == "" {
					continue // another route
				}
				g := newGateway(t)
				c := g.call(o, firstExample(o))
				if c.param[p.Name] == text {
					continue
				}
				c.param[p.Name] = text
				response := g.send(c)
				checkResponse(t, contractChecker, o, response)
				if response.Status != http.StatusNotFound {
					t.Errorf("%s: the response to %s %q is %d %s", o.ID, p.Name, text, response.Status, response.Body)
				}
			}
		}
	}
}

// TestGrant sends the grant in the form and in the query of the token endpoint.
func TestGrant(t *testing.T) {
	contractChecker := checker(t)
	o := operationsByID(t)["issueToken"]
	const valid = "grant_type=client_credentials"
	query := func(grant string) map[string]string { return map[string]string{"grant_type": grant} }
	cases := map[string]struct {
		form   string
		query  map[string]string
		change func(*gateway, *request)
		status int
	}{
		"in the form":                 {form: valid, status: 200},
		"in the query":                {query: query("client_credentials"), status: 200},
		"in both":                     {form: valid, query: query("client_credentials"), status: 200},
		"empty in the query":          {form: valid, query: query(""), status: 200},
		"empty only in the query":     {form: "x=y", query: query(""), status: 400},
		"in neither":                  {form: "x=y", status: 400},
		"another in the form":         {form: "grant_type=password", status: 400},
		"another in the query":        {query: query("password"), status: 400},
		"two":                         {form: valid, query: query("password"), status: 400},
		"the client's id in the form": {form: valid + "&client_id=other", status: 400},
		"both ways":                   {form: valid + "&client_id=x&client_secret=y", status: 400},
		"JSON": {form: `{"grant_type":"client_credentials"}`, status: 400, change: func(_ *gateway, c *request) {
			c.header["content-type"] = "application/json"
		}},
		"the client in the form": {status: 200, change: func(g *gateway, c *request) {
			delete(c.header, "authorization")
			c.body = valid + "&client_id=" + g.client.ID + "&client_secret=" + g.password
		}},
	}
	for name, given := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t)
			c := g.call(o, o.Body["application/x-www-form-urlencoded"].Examples["token"])
			c.body, c.query = given.form, given.query
			if given.change != nil {
				given.change(g, c)
			}
			response := g.send(c)
			checkResponse(t, contractChecker, o, response)
			if response.Status != given.status {
				t.Errorf("%d %s, want %d", response.Status, response.Body, given.status)
			}
		})
	}
}
