package dynamo_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/circuit/dynamo"
)

// TestStore runs on a DynamoDB. Each step is a Swap, and what it returns.
func TestStore(t *testing.T) {
	table := dynamotest.NewTable(t)
	store := dynamo.New(table.Client, table.Name)
	pay, sms := circuit.Key{Account: "mtn/a1", Operation: "pay"}, circuit.Key{Account: "mtn/a1", Operation: "sms"}
	other := circuit.Key{Account: "mtn/a2", Operation: "pay"}
	expire := time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		name      string
		key       circuit.Key
		old, next string
		current   string
		swapped   bool
	}{
		{"none to replace", pay, "1 x", "1 a", "", false},
		{"the first", pay, "", "1 a", "1 a", true},
		{"the first again", pay, "", "1 b", "1 a", false},
		{"the next", pay, "1 a", "1 b", "1 b", true},
		{"an old one", pay, "1 a", "1 c", "1 b", false},
		{"another operation of the item", sms, "", "1 s", "1 s", true},
		{"another account", other, "", "1 o", "1 o", true},
	} {
		current, swapped, err := store.Swap(t.Context(), step.key, step.old, step.next, expire)
		if err != nil || current != step.current || swapped != step.swapped {
			t.Errorf("%s: %q, %v, %v; want %q, %v", step.name, current, swapped, err, step.current, step.swapped)
		}
	}
	for key, want := range map[circuit.Key]string{pay: "1 b", sms: "1 s", other: "1 o", {Account: "x/y"}: ""} {
		if got, err := store.Load(t.Context(), key); err != nil || got != want {
			t.Errorf("%v: %q, %v; want %q", key, got, err, want)
		}
	}
}

// An error names no value.
func TestStoreErrors(t *testing.T) {
	table := dynamotest.NewTable(t)
	store := dynamo.New(table.Client, "no-such-table")
	key := circuit.Key{Account: "mtn/a1", Operation: "pay"}
	_, err := store.Load(t.Context(), key)
	_, _, swapErr := store.Swap(t.Context(), key, "", "1 secret", time.Now())
	for _, err := range []error{err, swapErr} {
		if err == nil || !strings.HasPrefix(err.Error(), "circuit: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("the error is %v", err)
		}
	}
}
