package runs

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPackKeepsTextsAndOrder(t *testing.T) {
	for _, texts := range [][]string{{""}, {"a", "", "b"}, {"\x00", "\x01", "a\x00\x01\x01"}, {"\x01\x02"}} {
		if got := Unpack(Pack(texts...)); !slices.Equal(got, texts) {
			t.Errorf("%q became %q", texts, got)
		}
	}
	ordered := [][]string{{"", "z"}, {"a", "b"}, {"a", "c"}, {"ab", "a"}, {"b", ""}}
	for i := 1; i < len(ordered); i++ {
		if bytes.Compare(Pack(ordered[i-1]...), Pack(ordered[i]...)) >= 0 {
			t.Errorf("%q is not before %q", ordered[i-1], ordered[i])
		}
	}
}

// Records come sorted, each as often as it was added, with many parts in several generations too.
func TestSorted(t *testing.T) {
	const count = 5000
	random := rand.New(rand.NewSource(1))
	for name, memory := range map[string]int{
		"in memory": MaxMemory, "in some parts": 64 << 10, "in many parts": 2 << 10,
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t.TempDir(), "test")
			s.memory = memory
			var want []string
			for range count {
				text := fmt.Sprint(random.Intn(count))
				want = append(want, text)
				if err := s.Add(Pack(text, strings.Repeat("x", random.Intn(50)))); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(want)
			var got []string
			for record, err := range s.Sorted() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, Unpack(record)[0])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d records, want %d sorted ones", len(got), len(want))
			}
			if err := s.Remove(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(s.Folder); len(left) > 0 {
				t.Errorf("%d files are left", len(left))
			}
		})
	}
}

func TestDamagedPartIsAnError(t *testing.T) {
	s := New(t.TempDir(), "test")
	if err := s.Add(Pack("a", "b")); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Folder, s.Files[0])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{whole[:len(whole)-1], append(bytes.Repeat([]byte{0xff}, 12), whole...)} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		for record, err := range s.Sorted() {
			if err == nil {
				t.Errorf("%q is a record of a damaged file", record)
			}
		}
	}
}

// Each record is found by its first text, and nothing else is.
func TestIndex(t *testing.T) {
	const count = 3 * indexStep
	s := New(t.TempDir(), "test")
	for i := range count {
		for _, version := range []string{"old", "new"} {
			if version == "new" && i%7 > 0 {
				continue
			}
			text := map[string]string{"old": "a", "new": "b"}[version]
			if err := s.Add(Pack(fmt.Sprint("key-", i), text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	x, err := NewIndex(s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }() // it was only read
	for i := range count {
		want := "a"
		if i%7 == 0 {
			want = "b"
		}
		key := fmt.Sprint("key-", i)
		if found, err := x.Find(key); err != nil || len(found) != 2 || found[0] != key || found[1] != want {
			t.Fatalf("%s is %q, want %s: %v", key, found, want, err)
		}
	}
	for _, key := range []string{"", "key", "key-", "key-9999", "z"} {
		if found, err := x.Find(key); err != nil || found != nil {
			t.Errorf("%q is %q: %v", key, found, err)
		}
	}
}
