package contract

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Checker checks responses against the contract. It is safe for concurrent use.
type Checker struct {
	operations []Operation
	schemas    map[string]*Schema // by operation, status and media type
}

// NewChecker returns a checker for a document.
func NewChecker(d *Document) (*Checker, error) {
	operations, err := d.Operations()
	if err != nil {
		return nil, err
	}
	c := &Checker{operations, map[string]*Schema{}}
	for _, o := range operations {
		for status, response := range o.Responses {
			for mediaType, content := range response.Body {
				name := o.ID + " " + status + " " + mediaType
				if c.schemas[name], err = Compile(content.Schema); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	}
	return c, nil
}

// FindOperation returns the operation of a method and an escaped path, or false if the contract has none.
// It ignores one slash at the end of the path.
func (c *Checker) FindOperation(method, path string) (Operation, bool) {
	path = strings.TrimSuffix(path, "/")
	for _, o := range c.operations {
		if o.Method == method && matchPath(strings.Split(o.Path, "/"), strings.Split(path, "/")) {
			return o, true
		}
	}
	return Operation{}, false
}

func matchPath(template, path []string) bool {
	if len(template) != len(path) {
		return false
	}
	for i, segment := range template {
		parameter := strings.HasPrefix(segment, "{")
		if !parameter && !strings.EqualFold(segment, path[i]) && strings.ReplaceAll(segment, "%3A", ":") != path[i] {
			return false
		}
		if path[i] == "" && segment != "" {
			return false
		}
	}
	return true
}

// documentedOnly lists the headers that a response may have only if the contract names them for its status.
var documentedOnly = []string{"Retry-After", "Location", "WWW-Authenticate", "Idempotent-Replayed"}

// CheckResponse checks the status, the headers and the body of a response against the contract.
// The response to a path that the contract does not have must be 404.
func (c *Checker) CheckResponse(method, path string, status int, header http.Header, body []byte) error {
	o, known := c.FindOperation(method, path)
	if !known {
		if status != http.StatusNotFound {
			return fmt.Errorf("%s %s is not in the contract, but its response is %d", method, path, status)
		}
		o, _ = c.FindOperation("POST", "/token") // every unknown route has the same 404
	}
	response, documented := o.Responses[strconv.Itoa(status)]
	if !documented {
		return fmt.Errorf("%s: the contract does not have the status %d", o.ID, status)
	}
	for name, parameter := range response.Headers {
		if err := checkHeader(parameter, header.Values(name)); err != nil {
			return fmt.Errorf("%s %d: header %s: %w", o.ID, status, name, err)
		}
	}
	for _, name := range documentedOnly {
		if _, documented := response.Headers[name]; !documented && header.Get(name) != "" {
			return fmt.Errorf("%s %d: the contract does not have the header %s", o.ID, status, name)
		}
	}
	mediaType, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	schema, documented := c.schemas[o.ID+" "+strconv.Itoa(status)+" "+mediaType]
	if !documented {
		return fmt.Errorf("%s %d: the contract does not have the media type %q", o.ID, status, mediaType)
	}
	if err := schema.ValidateJSON(body); err != nil {
		return fmt.Errorf("%s %d: %w", o.ID, status, err)
	}
	return nil
}

// checkHeader checks the values of a header against its schema.
func checkHeader(p Parameter, values []string) error {
	if len(values) == 0 {
		if p.Required {
			return errors.New("the header is missing")
		}
		return nil
	}
	schema, err := Compile(p.Schema)
	if err != nil {
		return err
	}
	return schema.Validate(strings.Join(values, ", "))
}
