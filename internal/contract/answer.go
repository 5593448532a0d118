package contract

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Checker holds answers against the contract. It is safe for parallel use.
type Checker struct {
	operations []Operation
	mutex      sync.Mutex
	schemas    map[string]*Schema
}

// NewChecker makes a checker of a document.
func NewChecker(d *Document) (*Checker, error) {
	operations, err := d.Operations()
	if err != nil {
		return nil, err
	}
	return &Checker{operations: operations, schemas: map[string]*Schema{}}, nil
}

// Find gives the operation of a method and an escaped path; false for a route that the contract does not have. One
// slash at the end does not matter.
func (c *Checker) Find(method, path string) (Operation, bool) {
	path = strings.TrimSuffix(path, "/")
	for _, o := range c.operations {
		if o.Method == method && fits(strings.Split(o.Path, "/"), strings.Split(path, "/")) {
			return o, true
		}
	}
	return Operation{}, false
}

func fits(wanted, given []string) bool {
	if len(wanted) != len(given) {
		return false
	}
	for i, segment := range wanted {
		if !strings.HasPrefix(segment, "{") && !strings.EqualFold(segment, given[i]) && strings.ReplaceAll(segment, "%3A", ":") != given[i] {
			return false
		}
		if given[i] == "" && segment != "" {
			return false
		}
	}
	return true
}

// Answer holds an answer to a request against the contract: its status, headers and body. A request to a route that the
// contract does not have must be 404.
func (c *Checker) Answer(method, path string, status int, header http.Header, body []byte) error {
	o, known := c.Find(method, path)
	if !known {
		if status != http.StatusNotFound {
			return fmt.Errorf("%s %s is not in the contract, and was answered %d", method, path, status)
		}
		o, _ = c.Find("POST", "/token") // its 404 is that of every unknown route
	}
	response, documented := o.Responses[strconv.Itoa(status)]
	if !documented {
		return fmt.Errorf("%s: the contract does not have the status %d", o.ID, status)
	}
	for name, parameter := range response.Headers {
		if err := c.header(parameter, header.Values(name)); err != nil {
			return fmt.Errorf("%s %d: header %s: %w", o.ID, status, name, err)
		}
	}
	for _, name := range []string{"Retry-After", "Location", "WWW-Authenticate", "Idempotent-Replayed"} {
		if _, documented := response.Headers[name]; !documented && header.Get(name) != "" {
			return fmt.Errorf("%s %d: the contract does not have the header %s", o.ID, status, name)
		}
	}
	mediaType, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	content, documented := response.Body[mediaType]
	if !documented {
		return fmt.Errorf("%s %d: the contract does not have the media type %q", o.ID, status, mediaType)
	}
	schema, err := c.compiled(o.ID+" "+strconv.Itoa(status), content.Schema)
	if err != nil {
		return err
	}
	if err := schema.ValidateJSON(body); err != nil {
		return fmt.Errorf("%s %d: %w", o.ID, status, err)
	}
	return nil
}

// header holds a header's values against its schema.
func (c *Checker) header(p Parameter, values []string) error {
	if len(values) == 0 {
		if p.Required {
			return fmt.Errorf("is missing")
		}
		return nil
	}
	schema, err := Compile(p.Schema)
	if err != nil {
		return err
	}
	return schema.Validate(strings.Join(values, ", "))
}

// compiled keeps each schema that was compiled.
func (c *Checker) compiled(name string, source Object) (*Schema, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found := c.schemas[name]; found != nil {
		return found, nil
	}
	schema, err := Compile(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.schemas[name] = schema
	return schema, nil
}
