package operationtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"mobilegateway/shared/strictjson"
)

// Event is a request as API Gateway sends it. Its methods change it and return it, so that they can be chained.
type Event struct {
	fields  map[string]any
	body    map[string]any
	rawBody *string
}

// LoadEvent reads a golden event with its body.
func LoadEvent(t testing.TB, path string) *Event {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := &Event{fields: decodeObject(t, text)}
	body, _ := e.fields["body"].(string)
	if body != "" {
		e.body = decodeObject(t, []byte(body))
	}
	return e
}

// decodeObject decodes a JSON object and keeps its numbers as they are written.
func decodeObject(t testing.TB, text []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var decoded map[string]any
	if err := decoder.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// SetHeader sets a header. Several values repeat it; without a value it is not sent.
func (e *Event) SetHeader(name string, values ...string) *Event {
	single := e.object("headers")
	several := e.object("multiValueHeaders")
	isSameName := func(known string, _ any) bool { return strings.EqualFold(known, name) }
	maps.DeleteFunc(single, isSameName)
	maps.DeleteFunc(several, isSameName)
	if len(values) > 0 {
		single[name] = values[len(values)-1]
		several[name] = values
	}
	return e
}

// SetPathParameter sets a path parameter as API Gateway sends it.
func (e *Event) SetPathParameter(name, value string) *Event {
	e.object("pathParameters")[name] = value
	return e
}

// SetField sets a top-level field of the event: "httpMethod", "resource".
func (e *Event) SetField(name string, value any) *Event {
	e.fields[name] = value
	return e
}

// SetBodyPart sets a part of the body, "a.b.c". A json.RawMessage is sent as it is.
func (e *Event) SetBodyPart(path string, value any) *Event {
	parent, key := e.parent(path)
	parent[key] = value
	return e
}

// RemoveBodyPart removes a part of the body.
func (e *Event) RemoveBodyPart(path string) *Event {
	parent, key := e.parent(path)
	delete(parent, key)
	return e
}

// SetRawBody replaces the whole body by a text.
func (e *Event) SetRawBody(body string) *Event {
	e.rawBody = &body
	return e
}

// Body returns the body that will be sent.
func (e *Event) Body() string {
	if e.rawBody != nil {
		return *e.rawBody
	}
	if e.body == nil {
		return ""
	}
	return string(strictjson.Marshal(e.body))
}

// JSON returns the event as API Gateway sends it to the function.
func (e *Event) JSON() []byte {
	fields := maps.Clone(e.fields)
	fields["body"] = e.Body()
	return strictjson.Marshal(fields)
}

// object returns one of the event's objects, and creates it if the golden event has none.
func (e *Event) object(name string) map[string]any {
	part, found := e.fields[name].(map[string]any)
	if !found {
		part = map[string]any{}
		e.fields[name] = part
	}
	return part
}

// parent returns the object with the last key of a path. The objects before it are in the body.
func (e *Event) parent(path string) (parent map[string]any, key string) {
	keys := strings.Split(path, ".")
	point := e.body
	for _, key := range keys[:len(keys)-1] {
		point = point[key].(map[string]any)
	}
	return point, keys[len(keys)-1]
}
