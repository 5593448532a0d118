package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal writes a value as encoding/json does, but without HTML escaping and without a trailing newline: a merchant's
// "&" stays "&" (decision "pay-state"). It panics on a value that JSON cannot express (a channel, a broken
// json.RawMessage), which is a program error.
func Marshal(v any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("strictjson: %T cannot be written as JSON", v))
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}
