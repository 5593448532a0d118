package ledgertest_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/ledger"
)

// One violation of each kind is found, and the write that the row describes is not one.
func TestCheckWriteFindsViolations(t *testing.T) {
	reserved := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: "Shop_1"}, Call: ledger.Call{State: ledger.Reserved},
		Progress: ledger.Progress{Status: ledger.Pending},
	}
	final := reserved.Clone()
	final.Kind, final.State, final.Status = ledger.SMS, ledger.Done, ledger.DeliveredToTerminal
	for name, c := range map[string]struct {
		before *ledger.Entry
		made   ledger.Transition
		change func(e *ledger.Entry)
		want   string // part of the violation; "" for none
	}{
		"as in the row":      {reserved, ledger.Lapse, func(e *ledger.Entry) { e.State = ledger.Unknown }, ""},
		"an insert":          {nil, ledger.Reserve, func(*ledger.Entry) {}, ""},
		"no row":             {reserved, ledger.NoTransition, func(*ledger.Entry) {}, "has no row"},
		"from another State": {final, ledger.Lapse, func(*ledger.Entry) {}, "no move from done, terminal"},
		"to another State": {reserved, ledger.Lapse, func(e *ledger.Entry) { e.State = ledger.Refused },
			"no move from reserved, pending to refused, pending"},
		"to another Status": {reserved, ledger.Lapse, func(e *ledger.Entry) {
			e.State, e.Status = ledger.Unknown, ledger.Failed
		}, "to unknown, failed"},
		"no State stays where it may not": {reserved, ledger.EndReleasedLookups, func(*ledger.Entry) {}, "no move"},
		"another part": {reserved, ledger.LeaseLookup, func(e *ledger.Entry) { e.Manual.Who = "ama" },
			`the changed part "manual resolution"`},
		"its identity": {reserved, ledger.LeaseLookup, func(e *ledger.Entry) { e.ID = "Shop_2" },
			`the changed part "identity"`},
		"a final status": {final, ledger.AddReceipt, func(e *ledger.Entry) { e.Status = ledger.DeliveryImpossible },
			"the final status DeliveredToTerminal became"},
		"a write of another item": {reserved, ledger.MoveDue, func(e *ledger.Entry) { e.Poll.Attempts++ },
			`the changed part "next lookup"`},
	} {
		after := reserved.Clone()
		if c.before != nil {
			after = c.before.Clone()
		}
		c.change(after)
		err := ledgertest.CheckWrite(c.before, after, c.made)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Each field belongs to exactly one part, except the State, the Status and what each write changes.
func TestPartsCoverTheEntry(t *testing.T) {
	free := []string{
		"Entry.Version", "Entry.Writer", "Entry.UpdatedAt", "Entry.DueAt", "Entry.Call.State", "Entry.Progress.Status",
		"Entry.Outbox.Waiting[].RelayNotified",
	}
	full := ledgertest.Full(t)
	eachLeaf(reflect.ValueOf(full).Elem(), "Entry", func(field reflect.Value, path string) {
		kept := reflect.New(field.Type()).Elem()
		kept.Set(field)
		changed := full.Clone()
		field.SetZero()
		words := ledgertest.ChangedParts(changed, full)
		field.Set(kept)
		want := 1
		if slices.Contains(free, path) {
			want = 0
		}
		if len(words) != want {
			t.Errorf("%s is in the parts %q, want %d", path, words, want)
		}
	})
}

// eachLeaf visits every field that is not a struct, and the first element of every list.
func eachLeaf(v reflect.Value, path string, visit func(reflect.Value, string)) {
	switch {
	case v.Kind() == reflect.Struct && v.Type().String() != "time.Time":
		for i := range v.NumField() {
			eachLeaf(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		eachLeaf(v.Index(0), path+"[]", visit)
	case v.Kind() != reflect.Interface:
		visit(v, path)
	}
}

// Each row is complete, and each word of a move is a State or a Status.
func TestRowsAreComplete(t *testing.T) {
	words := append(ledgertest.States(), ledgertest.Statuses()...)
	names := map[string]bool{}
	for _, row := range ledger.Rows() {
		if row.Name == "" || row.Callers == "" || row.Condition == "" || names[row.Name] {
			t.Errorf("the row %q is not complete, or there are two", row.Name)
		}
		names[row.Name] = true
		for _, m := range row.Moves {
			for _, word := range strings.Fields(m.From + " " + m.To) {
				if !slices.Contains(words, word) {
					t.Errorf("the row %q has the unknown word %q", row.Name, word)
				}
			}
		}
	}
}
