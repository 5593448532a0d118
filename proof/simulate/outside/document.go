package outside

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Document is a decoded JSON object, nil for any other text.
type Document map[string]any

// ParseDocument decodes a text. Its numbers keep their form.
func ParseDocument(body []byte) Document {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var d Document
	if decoder.Decode(&d) != nil {
		return nil
	}
	return d
}

// Text returns the text or the number at a path, "a.b.c"; "" for anything else. It enters the first item of an array.
func (d Document) Text(path string) string {
	var value any = map[string]any(d)
	for key := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[key]
		if items, isArray := value.([]any); isArray && len(items) > 0 {
			value = items[0]
		}
	}
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	}
	return ""
}

// object is a JSON object to encode.
type object map[string]any

// withoutEmpty removes the empty texts of an object.
func withoutEmpty(o object) object {
	for name, value := range o {
		if value == "" {
			delete(o, name)
		}
	}
	return o
}

// mustMarshal encodes a value that always encodes.
func mustMarshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
