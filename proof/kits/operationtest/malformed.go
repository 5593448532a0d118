package operationtest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// malformedShapes are bodies that are no request of any operation.
var malformedShapes = []string{
	``, ` `, `null`, `true`, `0`, `-`, `1e`, `""`, `"a`, `[]`, `[{}]`, `{`, `}`, `{}}`, `{} {}`, `{},`, `{"a"}`,
	`{"a":}`,
	`{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{a:1}`, `{'a':1}`, `{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":NaN}`,
	`{"a":Infinity}`, `{"a":0x1}`, `{"a":1/**/}`, `{"a":1}//`, "\ufeff{}", "{\"a\":\"\n\"}", "{\"a\":\"\t\"}",
	`{"a":"\x41"}`, `{"a":"\u12"}`, `{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, `{"\ud800":1}`, "{\"a\":\"\xff\"}",
	"{\"\xc3\":1}", "{\"a\":\"\xed\xa0\x80\"}", `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":[{"b":1,"b":1}]}`,
	`a=1&b=2`, `<a>1</a>`, "--x\r\n\r\n{}\r\n--x--", "\x00", "{\x00}", "\u2028{}",
}

// malformedBodies makes at least 200 malformed bodies from a valid one: the shapes, cuts, bytes that no JSON text has,
// too many levels, and keys that occur twice.
func malformedBodies(valid string) []string {
	bodies := append([]string{}, malformedShapes...)
	const points = 36
	for i := range points {
		cut := i * len(valid) / points
		before, after := valid[:cut], valid[cut:]
		bodies = append(bodies, before, before+"\x00"+after, before+"\xff"+after, before+"\x1b"+after)
	}
	inner := strings.TrimPrefix(valid, "{")
	key, _, _ := strings.Cut(inner, ":")
	for _, value := range []string{`null`, `1`, `"a"`, `{}`, `[]`} {
		bodies = append(bodies, "{"+key+":"+value+","+inner, strings.TrimSuffix(valid, "}")+","+key+":"+value+"}")
	}
	for levels := 16; levels < 20; levels++ {
		arrays := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		objects := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
		bodies = append(bodies, `{"x":`+arrays+","+inner, `{"x":`+objects+","+inner)
	}
	return bodies
}

// CheckMalformedBodies sends each malformed body with the headers of a valid request. Each is refused in the shape of
// the API's errors, and nothing is stored or sent.
func CheckMalformedBodies(t *testing.T, newFixture func(testing.TB) *Fixture, loadEvent func(testing.TB) *Event) {
	t.Helper()
	w := newFixture(t)
	bodies := malformedBodies(loadEvent(t).Body())
	if len(bodies) < 200 {
		t.Fatalf("there are %d bodies, want at least 200", len(bodies))
	}
	for i, body := range bodies {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			encoded := base64.StdEncoding.EncodeToString([]byte(body)) // an event in JSON has only valid UTF-8
			response := w.Send(t, loadEvent(t).SetField("isBase64Encoded", true).SetRawBody(encoded))
			exception, isException := response.Exception()
			if response.Status != 400 || !isException || exception.MessageID != "SVC0002" ||
				len(exception.Variables) != 1 {
				t.Errorf("%q: response %d %s, want 400 SVC0002 with a part", body, response.Status, response.Body)
			}
			w.AssertNoSideEffects(t)
		})
	}
}
