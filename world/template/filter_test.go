package template_test

import (
	"encoding/json"
	"testing"

	"mobilegateway/world/template"
)

func TestFilter(t *testing.T) {
	cases := map[string]struct {
		pattern, record string
		matches         bool
	}{
		"the value":              {`{"a":{"S":["1"]}}`, `{"a":{"S":"1"}}`, true},
		"another value":          {`{"a":{"S":["1"]}}`, `{"a":{"S":"2"}}`, false},
		"one of two values":      {`{"a":["1","2"]}`, `{"a":"2"}`, true},
		"absent":                 {`{"a":{"S":["1"]}}`, `{}`, false},
		"text in place of a map": {`{"a":{"S":["1"]}}`, `{"a":"1"}`, false},
		"map in place of a text": {`{"a":["1"]}`, `{"a":{"S":"1"}}`, false},
		"one of two places":      {`{"a":["1"],"b":["2"]}`, `{"a":"1","b":"3"}`, false},
		"a number and null":      {`{"a":[1],"b":[null]}`, `{"a":1,"b":null}`, true},
		"null and absent":        {`{"b":[null]}`, `{}`, false},
		"the empty pattern":      {`{}`, `{"a":1}`, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			filter, err := template.NewFilter(c.pattern)
			if err != nil {
				t.Fatal(err)
			}
			var record map[string]any
			if err := json.Unmarshal([]byte(c.record), &record); err != nil {
				t.Fatal(err)
			}
			if actual := filter.Matches(record); actual != c.matches {
				t.Errorf("the record matches: %v, want %v", actual, c.matches)
			}
		})
	}
}
