package keyring

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const life = 5 * time.Minute

// newStoredRing makes a stored ring with a key added at each of the times.
func newStoredRing(t testing.TB, added ...time.Time) []byte {
	t.Helper()
	random := rand.New(rand.NewSource(1))
	var text []byte
	for _, at := range added {
		var err error
		if text, err = AddKey(text, random, at); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}
	return text
}

func parse(t testing.TB, text []byte) *Ring {
	t.Helper()
	ring, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return ring
}

func TestParseRefuses(t *testing.T) {
	const key = `"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="`
	const added = `"added":"2026-01-01T00:00:00Z"`
	cases := map[string]string{
		"no JSON":           `keys`,
		"nothing":           ``,
		"no keys":           `{"keys":[]}`,
		"number 0":          `{"keys":[{"number":0,` + key + `,` + added + `}]}`,
		"number too large":  `{"keys":[{"number":65536,` + key + `,` + added + `}]}`,
		"a short key":       `{"keys":[{"number":1,"key":"AAEC",` + added + `}]}`,
		"not base64":        `{"keys":[{"number":1,"key":"not base64 but SECRET",` + added + `}]}`,
		"without added":     `{"keys":[{"number":1,` + key + `}]}`,
		"a number twice":    `{"keys":[{"number":1,` + key + `,` + added + `},{"number":1,` + key + `,` + added + `}]}`,
		"added is no time":  `{"keys":[{"number":1,` + key + `,"added":"yesterday"}]}`,
		"number is no text": `{"keys":[{"number":"1",` + key + `,` + added + `}]}`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(text))
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "AAEC") {
				t.Errorf("the error shows a key: %v", err)
			}
		})
	}
}

func TestParseIgnoresUnknownFields(t *testing.T) {
	text := bytes.Replace(newStoredRing(t, start), []byte(`{"keys"`), []byte(`{"note":"from a later version","keys"`), 1)
	if _, found := parse(t, text).FindKey(1); !found {
		t.Error("key 1 is not found")
	}
}

func TestSigningKey(t *testing.T) {
	cases := []struct {
		name  string
		added []time.Time
		now   time.Time
		want  int
	}{
		{"the only key signs at once", []time.Time{start}, start, 1},
		{"a new key waits for one cache life", []time.Time{start, start.Add(time.Hour)}, start.Add(time.Hour + life - 1), 1},
		{"then it signs", []time.Time{start, start.Add(time.Hour)}, start.Add(time.Hour + life), 2},
		{"the newest of the ripe keys signs", []time.Time{start, start.Add(time.Hour), start.Add(2 * time.Hour)}, start.Add(2 * time.Hour), 2},
		{"of keys added together the first signs first", []time.Time{start, start}, start.Add(life - 1), 1},
		{"and then the last", []time.Time{start, start}, start.Add(life), 2},
		{"a key from the future does not sign", []time.Time{start, start.Add(24 * time.Hour)}, start.Add(time.Hour), 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := parse(t, newStoredRing(t, c.added...)).SigningKey(c.now, life).Number; got != c.want {
				t.Errorf("key %d signs, want %d", got, c.want)
			}
		})
	}
}

func TestAddKeyKeepsExistingKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		count := rapid.IntRange(1, 12).Draw(t, "count")
		var text []byte
		for i := 1; i <= count; i++ {
			longer, err := AddKey(text, random, start.Add(time.Duration(i)*time.Hour))
			if err != nil {
				t.Fatalf("Append: %v", err)
			}
			ring, err := Parse(longer)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if _, found := ring.FindKey(i); !found {
				t.Fatalf("key %d is not there", i)
			}
			if i > 1 {
				before, _ := Parse(text)
				for _, key := range before.keys {
					if same, found := ring.FindKey(key.Number); !found || !bytes.Equal(same.Value, key.Value) || !same.AddedAt.Equal(key.AddedAt) {
						t.Fatalf("key %d changed", key.Number)
					}
				}
			}
			text = longer
		}
	})
}

func TestAddKeyRefuses(t *testing.T) {
	if _, err := AddKey([]byte("{"), rand.New(rand.NewSource(1)), start); err == nil {
		t.Error("a broken ring was appended to")
	}
	if _, err := AddKey(nil, strings.NewReader("short"), start); err == nil {
		t.Error("a key was made of too few random bytes")
	}
	full, err := json.Marshal(storedRing{Keys: []storedKey{{Number: MaxKeyNumber, Key: make([]byte, KeySize), Added: start}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := AddKey(full, rand.New(rand.NewSource(1)), start); err == nil {
		t.Error("a full ring was appended to")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"keys":[{"number":1,"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","added":"2026-01-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"keys":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		ring, err := Parse(text)
		if err != nil {
			return
		}
		if key := ring.SigningKey(start, life); len(key.Value) != KeySize || key.Number < 1 || key.Number > MaxKeyNumber {
			t.Errorf("a ring gave the key %d of %d bytes", key.Number, len(key.Value))
		}
	})
}

// decision "key-rings": a key goes when another has long signed in its place, and its number never comes again.
func TestRemoveKey(t *testing.T) {
	at := start
	random := rand.New(rand.NewSource(1))
	var text []byte
	for i := range 3 {
		var err error
		if text, err = AddKey(text, random, at.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int]time.Time{1: at.Add(time.Hour + life), 2: at.Add(2*time.Hour + life), 3: {}, 4: {}} {
		if stopped, found := whole.SigningEndedAt(number, life); !stopped.Equal(want) || found == want.IsZero() {
			t.Errorf("key %d stopped to sign at %s, %v", number, stopped, found)
		}
	}
	for _, number := range []int{3, 4} {
		if _, err := RemoveKey(text, number); err == nil {
			t.Errorf("key %d was retired", number)
		}
	}
	if text, err = RemoveKey(text, 2); err != nil {
		t.Fatal(err)
	}
	if text, err = AddKey(text, random, at); err != nil {
		t.Fatal(err)
	}
	remaining, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for number := range 6 {
		was, _ := whole.FindKey(number)
		is, found := remaining.FindKey(number)
		if want := number == 1 || number == 3 || number == 4; found != want || (number < 4 && found && !bytes.Equal(is.Value, was.Value)) {
			t.Errorf("key %d: found %v", number, found)
		}
	}
	if _, err := RemoveKey([]byte("{"), 1); err == nil {
		t.Error("a broken ring was retired from")
	}
}
