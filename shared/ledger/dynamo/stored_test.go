package dynamo_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/ledger/dynamo"
)

var writeStored = flag.Bool("write-stored", false, "write the items of storedEntries again")

// typed is an item as the JSON of a stream's image has it: each value under the name of its type.
func typed(t *testing.T, of item) map[string]any {
	t.Helper()
	image := make(map[string]any, len(of))
	for name, value := range of {
		image[name] = typedValue(t, value)
	}
	return image
}

func typedValue(t *testing.T, of types.AttributeValue) map[string]any {
	t.Helper()
	switch value := of.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": value.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": value.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": value.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": value.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": value.Value}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": typed(t, value.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(value.Value))
		for i, element := range value.Value {
			list[i] = typedValue(t, element)
		}
		return map[string]any{"L": list}
	}
	t.Fatalf("a value of type %T", of)
	return nil
}

// storedJSON is the golden form of items: one object, one line for each item, sorted by names.
func storedJSON(t *testing.T, items map[string]item) []byte {
	t.Helper()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(items)) {
		image, err := json.Marshal(map[string]any{name: typed(t, items[name])})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(image[1:len(image)-1]))
	}
	return []byte("{\n" + strings.Join(lines, ",\n") + "\n}\n")
}

// readStored reads a golden file of items.
func readStored(t *testing.T, name string) ([]byte, map[string]json.RawMessage) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var images map[string]json.RawMessage
	if err := json.Unmarshal(content, &images); err != nil {
		t.Fatal(err)
	}
	return content, images
}

// TestStoredItemsAreReadAndWrittenAgain reads items that former versions stored, and writes each again byte for byte.
// stored.json has the entries of storedEntries. every_field.json has an entry in which each field has a value of its
// own; it is never written again, so that it stays the work of a former version.
func TestStoredItemsAreReadAndWrittenAgain(t *testing.T) {
	seen := map[string]bool{}
	for _, file := range []string{"stored.json", "every_field.json"} {
		content, images := readStored(t, file)
		again := map[string]item{}
		for name, image := range images {
			e, err := dynamo.DecodeImage(image)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			again[name] = encode(t, e)
			for attribute := range again[name] {
				seen[attribute] = true
			}
		}
		if got := storedJSON(t, again); !bytes.Equal(got, content) {
			t.Errorf("%s is written as another text:\n%s", file, got)
		}
	}
	for attribute := range encode(t, ledgertest.Full(t)) {
		if !seen[attribute] {
			t.Errorf("no stored item has the attribute %s", attribute)
		}
	}
}

// TestEntriesAreStoredAsBefore makes an entry of each kind in each state, and compares the items with those that a
// former version stored.
func TestEntriesAreStoredAsBefore(t *testing.T) {
	made := map[string]item{}
	for name, e := range storedEntries(t) {
		made[name] = encode(t, e)
	}
	got := storedJSON(t, made)
	if *writeStored {
		if err := os.WriteFile(filepath.Join("testdata", "stored.json"), got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := readStored(t, "stored.json")
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("stored items (-want +got):\n%s", diff)
	}
}
