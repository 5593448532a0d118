package template_test

import (
	"encoding/json"
	"testing"

	"mobilegateway/internal/template"
)

func TestFilter(t *testing.T) {
	cases := map[string]struct {
		pattern, record string
		passes          bool
	}{
		"the value":               {`{"a":{"S":["1"]}}`, `{"a":{"S":"1"}}`, true},
		"another value":           {`{"a":{"S":["1"]}}`, `{"a":{"S":"2"}}`, false},
		"one of two values":       {`{"a":["1","2"]}`, `{"a":"2"}`, true},
		"absent":                  {`{"a":{"S":["1"]}}`, `{}`, false},
		"absent, as wanted":       {`{"a":{"S":[{"exists":false}]}}`, `{}`, true},
		"present, as wanted":      {`{"a":[{"exists":true}]}`, `{"a":1}`, true},
		"present, against wishes": {`{"a":[{"exists":false}]}`, `{"a":1}`, false},
		"prefix":                  {`{"a":[{"prefix":"pay#"}]}`, `{"a":"pay#1"}`, true},
		"another prefix":          {`{"a":[{"prefix":"pay#"}]}`, `{"a":"sms#1"}`, false},
		"anything but":            {`{"a":[{"anything-but":["x"]}]}`, `{"a":"y"}`, true},
		"that very thing":         {`{"a":[{"anything-but":["x"]}]}`, `{"a":"x"}`, false},
		"all places must pass":    {`{"a":["1"],"b":["2"]}`, `{"a":"1","b":"3"}`, false},
		"a number and null":       {`{"a":[1],"b":[null]}`, `{"a":1,"b":null}`, true},
		"the empty pattern":       {`{}`, `{"a":1}`, true},
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
			if actual := filter.Matches(record); actual != c.passes {
				t.Errorf("passes: %v", actual)
			}
		})
	}
}
