package ledgertest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"mobilegateway/shared/ledger"
)

// CheckWrite compares a write of an entry with the row of its transition, and returns how it differs. before is nil for
// an insert. Both are as they are stored.
func CheckWrite(before, after *ledger.Entry, t ledger.Transition) error {
	if t == ledger.NoTransition || int(t) > len(ledger.Rows()) {
		return fmt.Errorf("a write of %s has no row in the table of transitions", after.Key)
	}
	row := t.Row()
	errs := []error{checkMove(row.Moves, before, after)}
	if before != nil && before.Status.Final() && before.Status != after.Status {
		errs = append(errs, fmt.Errorf("the final status %s became %s", before.Status, after.Status))
	}
	if before == nil {
		before = after // all of it is new
	}
	for _, word := range ChangedParts(before, after) {
		if !slices.Contains(Words(row.Changes), word) {
			errs = append(errs, fmt.Errorf("its row does not have the changed part %q", word))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the write %q of %s: %w", row.Name, after.Key, err)
	}
	return nil
}

// States are the words of a Move for the State, Statuses those for the Status, in the order in which it may change.
func States() []string {
	return []string{"absent", "reserved", "done", "refused", "unknown", "released"}
}

// Statuses are described at States.
func Statuses() []string {
	return []string{
		"none", "pending", "successful", "failed", "cancelled", "expired", "MessageWaiting", "DeliveredToNetwork",
		"terminal",
	}
}

// place returns the words of an entry's State and Status.
func place(e *ledger.Entry) (state, status string) {
	switch {
	case e == nil:
		return "absent", "none"
	case e.Kind == ledger.SMS && e.Status.Final():
		return string(e.State), "terminal"
	}
	return string(e.State), cmp.Or(string(e.Status), "none")
}

// checkMove returns an error if no move of a row leads from one entry to the other. Without a move, State and Status
// stay.
func checkMove(moves []ledger.Move, before, after *ledger.Entry) error {
	fromState, fromStatus := place(before)
	toState, toStatus := place(after)
	if len(moves) == 0 {
		moves = []ledger.Move{{}}
	}
	for _, m := range moves {
		if Leads(m, States(), fromState, toState) && Leads(m, Statuses(), fromStatus, toStatus) {
			return nil
		}
	}
	return fmt.Errorf("its row has no move from %s, %s to %s, %s", fromState, fromStatus, toState, toStatus)
}

// Leads reports whether a move leads from one word of a dimension to another.
func Leads(m ledger.Move, dimension []string, from, to string) bool {
	members := func(set string) []string {
		isOther := func(word string) bool { return !slices.Contains(dimension, word) }
		return slices.DeleteFunc(strings.Fields(set), isOther)
	}
	sources, targets := members(m.From), members(m.To)
	switch {
	case len(sources) > 0 && !slices.Contains(sources, from):
		return false
	case len(targets) == 0:
		return from == to
	case !slices.Contains(targets, to):
		return false
	case from == to || slices.Contains(dimension, "reserved"):
		return true
	}
	isOpen := slices.Contains([]string{"none", "pending", "MessageWaiting", "DeliveredToNetwork"}, from)
	return isOpen && slices.Index(dimension, from) < slices.Index(dimension, to)
}

// part is a part of an entry: its bit, its word for readers, and its values. The part without a bit never changes.
type part struct {
	bit    ledger.Parts
	word   string
	values func(e *ledger.Entry) []any
}

// parts are all parts. State, Status and what each write changes are in none.
var parts = sync.OnceValue(func() []part {
	return []part{
		{0, "identity", func(e *ledger.Entry) []any { return []any{e.Key, e.CreatedAt, e.Extra} }},
		{ledger.PartRequest, "request", func(e *ledger.Entry) []any {
			return []any{e.Merchant, e.Request, e.Route, e.Amount, e.ExpireAt}
		}},
		{ledger.PartOwner, "owner and lease", func(e *ledger.Entry) []any {
			return []any{e.Owner, e.LeaseUntil, e.SentAt, e.ReservedAt}
		}},
		{ledger.PartProof, "proof", func(e *ledger.Entry) []any {
			return []any{e.EverUnknown, e.NothingSent, e.ForeignKey, e.ReleasedBefore}
		}},
		{ledger.PartAttempts, "call attempts", func(e *ledger.Entry) []any { return []any{e.Call.Attempts} }},
		{ledger.PartOperator, "operator's id", func(e *ledger.Entry) []any {
			return []any{e.OperatorReference, e.Payer, e.Outbox.NotifToken}
		}},
		{ledger.PartDriverData, "driver's data", func(e *ledger.Entry) []any { return []any{e.DriverData} }},
		{ledger.PartResponse, "response", func(e *ledger.Entry) []any { return []any{e.Response} }},
		{ledger.PartFinal, "final time", func(e *ledger.Entry) []any { return []any{e.FinalAt, e.FailureReason} }},
		{ledger.PartClaim, "claim", func(e *ledger.Entry) []any { return []any{e.Claim} }},
		{ledger.PartConflicts, "conflicts", func(e *ledger.Entry) []any { return []any{e.Conflicts} }},
		{ledger.PartPoll, "next lookup", func(e *ledger.Entry) []any { return []any{e.Poll} }},
		{ledger.PartAddress, "address", func(e *ledger.Entry) []any { return []any{e.Outbox.URL, e.Outbox.From} }},
		{ledger.PartOutbox, "outbox", func(e *ledger.Entry) []any {
			waiting := slices.Clone(e.Outbox.Waiting)
			for i := range waiting {
				waiting[i].RelayNotified = false // each write records it
			}
			return []any{waiting, e.Outbox.UnrecordedAttempts}
		}},
		{ledger.PartDeliveries, "deliveries", func(e *ledger.Entry) []any {
			return []any{e.Outbox.Delivered, e.Outbox.FailedAttempts}
		}},
		{ledger.PartReplays, "replays", func(e *ledger.Entry) []any { return []any{e.Outbox.Replays} }},
		{ledger.PartUserSMS, "payer's SMS", func(e *ledger.Entry) []any { return []any{e.UserSMS} }},
		{ledger.PartManual, "manual resolution", func(e *ledger.Entry) []any { return []any{e.Manual} }},
		{ledger.PartBinding, "binding", func(e *ledger.Entry) []any { return []any{e.BindAt} }},
		{ledger.OtherItem, "another item", func(*ledger.Entry) []any { return nil }},
	}
})

// Words names the parts of a set.
func Words(of ledger.Parts) (named []string) {
	for _, p := range parts() {
		if of&p.bit != 0 {
			named = append(named, p.word)
		}
	}
	return named
}

// ChangedParts returns the words of the parts that differ.
func ChangedParts(before, after *ledger.Entry) (changed []string) {
	for _, p := range parts() {
		if !reflect.DeepEqual(p.values(before), p.values(after)) {
			changed = append(changed, p.word)
		}
	}
	return changed
}
