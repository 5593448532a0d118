package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/strictjson"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":{"b":["x",1,-0,1e3,null,true]}}`, `{"a":1,"a":2}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`,
		`{"a":"\\ud83d"}`, "{\"a\":\"\xff\"}", `[{}]`, `{} 1`, nested(17), `{"":{"":""}}`,
		`{"b":"\u2028\u2029\b\f\n\r\t\u0001\u001f\u007f\/\"\\<>&é"}`,
		`{"b":" ","\u0061":{"d":[],"c":[{},[[]]," "]}}`,
		" {\t\"a\" :\r\n[ 1 , 2 ,\"x\"] , \"b\" : { } } ",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		reader, err := strictjson.Parse(body)
		if err != nil {
			var failure *fault.Fault
			if !errors.As(err, &failure) || failure.Kind != fault.InvalidPart {
				t.Fatalf("Parse failed with %v", err)
			}
			return
		}
		canonical := reader.Canonical()
		if !reflect.DeepEqual(decode(t, body), decode(t, canonical)) {
			t.Fatalf("the canonical form of %s has another meaning: %s", body, canonical)
		}
		if expected := strictjson.Marshal(decode(t, body)); !bytes.Equal(canonical, expected) {
			t.Fatalf("the canonical form is %s, want %s as encoding/json writes it", canonical, expected)
		}
		if !utf8.Valid(canonical) {
			t.Fatalf("%q is not UTF-8", canonical)
		}
		again, err := strictjson.Parse(canonical)
		if err != nil || !bytes.Equal(again.Canonical(), canonical) {
			t.Fatalf("%s is not stable: %v", canonical, err)
		}
		reader.Text("a.b.c", 4)
		reader.OptionalText("a", 4)
		reader.Number("a.b")
		reader.TextList("a.b", 2, 4)
		reader.HasObject("a")
	})
}

// decode reads a body with encoding/json.
func decode(t *testing.T, body []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", body, err)
	}
	return value
}

// The canonical form does not depend on the order of keys, spaces and escapes.
func TestEquivalentBodiesHaveOneCanonicalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "object")
		plain := strictjson.Marshal(object)
		escaped, err := json.MarshalIndent(object, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		first, err := strictjson.Parse(plain)
		if err != nil {
			t.Fatal(err)
		}
		second, err := strictjson.Parse(escaped)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Canonical(), second.Canonical()) {
			t.Fatalf("the canonical forms differ: %s and %s", first.Canonical(), second.Canonical())
		}
	})
}

func TestMarshal(t *testing.T) {
	type response struct {
		State string          `json:"state"`
		Raw   json.RawMessage `json:"raw"`
	}
	got := string(strictjson.Marshal(response{State: "a=1&b=<2>é", Raw: json.RawMessage(`500.00`)}))
	if want := `{"state":"a=1&b=<2>é","raw":500.00}`; got != want {
		t.Errorf("Marshal = %s, want %s", got, want)
	}
}

func TestMarshalPanicsOnUnsupportedValue(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Marshal of a channel did not panic")
		}
	}()
	strictjson.Marshal(make(chan int))
}
