package keyring

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const life = 5 * time.Minute

// newStoredRing returns a stored ring with one key for each time of addition.
func newStoredRing(t testing.TB, added ...time.Time) []byte {
	t.Helper()
	random := rand.New(rand.NewSource(1))
	var text []byte
	for _, at := range added {
		var err error
		if text, err = AddKey(text, random, at); err != nil {
			t.Fatalf("AddKey: %v", err)
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
		"no JSON":          `keys`,
		"nothing":          ``,
		"no keys":          `{"keys":[]}`,
		"number 0":         `{"keys":[{"number":0,` + key + `,` + added + `}]}`,
		"number too large": `{"keys":[{"number":65536,` + key + `,` + added + `}]}`,
		"a short key":      `{"keys":[{"number":1,"key":"AAEC",` + added + `}]}`,
		"not base64":       `{"keys":[{"number":1,"key":"not base64 but SECRET",` + added + `}]}`,
		"without added":    `{"keys":[{"number":1,` + key + `}]}`,
		"a number twice": `{"keys":[{"number":1,` + key + `,` + added + `},` +
			`{"number":1,` + key + `,` + added + `}]}`,
		"added not a time":       `{"keys":[{"number":1,` + key + `,"added":"yesterday"}]}`,
		"a tombstone with a key": `{"keys":[{"number":1,` + key + `,` + added + `,"revoked":"2026-01-02T00:00:00Z"}]}`,
		"only a tombstone":       `{"keys":[{"number":1,` + added + `,"revoked":"2026-01-02T00:00:00Z"}]}`,
		"number as text":         `{"keys":[{"number":"1",` + key + `,` + added + `}]}`,
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
	text := bytes.Replace(newStoredRing(t, start), []byte(`{`), []byte(`{"note":"from a later version",`), 1)
	if _, found := parse(t, text).FindKey(1); !found {
		t.Error("key 1 is not found")
	}
}

func TestSigningKey(t *testing.T) {
	second, third := start.Add(time.Hour), start.Add(2*time.Hour)
	cases := []struct {
		name  string
		added []time.Time
		now   time.Time
		want  int
	}{
		{"the only key signs at once", []time.Time{start}, start, 1},
		{"a new key waits for its propagation", []time.Time{start, second}, second.Add(life - 1), 1},
		{"then it signs", []time.Time{start, second}, second.Add(life), 2},
		{"the newest of the propagated keys signs", []time.Time{start, second, third}, third, 2},
		{"of keys added together the first signs first", []time.Time{start, start}, start.Add(life - 1), 1},
		{"and then the last", []time.Time{start, start}, start.Add(life), 2},
		{"a key from the future does not sign", []time.Time{start, third}, second, 1},
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
				t.Fatalf("AddKey: %v", err)
			}
			ring, err := Parse(longer)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if _, found := ring.FindKey(i); !found {
				t.Fatalf("the new key %d is missing", i)
			}
			if i > 1 {
				before, _ := Parse(text)
				for _, key := range before.keys {
					same, _ := ring.FindKey(key.Number)
					if diff := cmp.Diff(key, same); diff != "" {
						t.Fatalf("key %d changed (-before +after):\n%s", key.Number, diff)
					}
				}
			}
			text = longer
		}
	})
}

func TestAddKeyRefuses(t *testing.T) {
	full, err := json.Marshal(storedRing{[]Key{{Number: MaxKeyNumber, Value: make([]byte, KeySize), AddedAt: start}}})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewSource(1))
	for name, try := range map[string]func() ([]byte, error){
		"a damaged ring":       func() ([]byte, error) { return AddKey([]byte("{"), random, start) },
		"too few random bytes": func() ([]byte, error) { return AddKey(nil, strings.NewReader("short"), start) },
		"a full ring":          func() ([]byte, error) { return AddKey(full, random, start) },
	} {
		if _, err := try(); err == nil {
			t.Errorf("AddKey accepted %s", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(newStoredRing(f, start))
	f.Add([]byte(`{"keys":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		ring, err := Parse(text)
		if err != nil {
			return
		}
		key := ring.SigningKey(start, life)
		if len(key.Value) != KeySize || key.Number < 1 || key.Number > MaxKeyNumber {
			t.Errorf("a ring returned the key %d of %d bytes", key.Number, len(key.Value))
		}
	})
}

// Decision "key-rings": only a key with a successor is removed, and its number is never used again.
func TestRemoveKey(t *testing.T) {
	second, third := start.Add(time.Hour), start.Add(2*time.Hour)
	text := newStoredRing(t, start, second, third)
	whole := parse(t, text)
	for number, want := range map[int]time.Time{1: second.Add(life), 2: third.Add(life), 3: {}, 4: {}} {
		if stopped, found := whole.SigningEndedAt(number, life); !stopped.Equal(want) || found == want.IsZero() {
			t.Errorf("key %d stopped signing at %s (%v), want %s", number, stopped, found, want)
		}
	}
	for _, number := range []int{3, 4} {
		if _, err := RemoveKey(text, number); err == nil {
			t.Errorf("key %d was removed", number)
		}
	}
	text, err := RemoveKey(text, 2)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = AddKey(text, rand.New(rand.NewSource(2)), start); err != nil {
		t.Fatal(err)
	}
	keys := parse(t, text).keys
	want := []Key{whole.keys[0], whole.keys[2], {Number: 4, Value: keys[len(keys)-1].Value, AddedAt: start}}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys after removing 2 and adding one (-want +got):\n%s", diff)
	}
	if _, err := RemoveKey([]byte("{"), 1); err == nil {
		t.Error("RemoveKey accepted a damaged ring")
	}
}

// decision "key-rings": a revoked key neither signs nor verifies, and its number never returns.
func TestRevokeKey(t *testing.T) {
	second := start.Add(time.Hour)
	text := newStoredRing(t, start, second)
	if _, err := RevokeKey(newStoredRing(t, start), 1, start); err == nil {
		t.Error("the only key was revoked")
	}
	if _, err := RevokeKey(text, 3, start); err == nil {
		t.Error("a key that was never issued was revoked")
	}
	text, err := RevokeKey(text, 2, second)
	if err != nil {
		t.Fatal(err)
	}
	ring := parse(t, text)
	if _, found := ring.FindKey(2); found || ring.SigningKey(second.Add(life), life).Number != 1 {
		t.Error("the revoked key 2 verifies or signs")
	}
	if _, ended := ring.SigningEndedAt(1, life); ended {
		t.Error("key 1 has no live successor, and has ended")
	}
	if _, err := RevokeKey(text, 2, second); err == nil {
		t.Error("key 2 was revoked twice")
	}
	if text, err = AddKey(text, rand.New(rand.NewSource(2)), second); err != nil {
		t.Fatal(err)
	}
	if _, found := parse(t, text).FindKey(3); !found {
		t.Error("the next key has not the number 3")
	}
}
