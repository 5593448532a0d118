package ledgertest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

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

// part is a part of an entry: its bit, its word for readers, and whether it differs. The part without a bit never
// changes.
type part struct {
	bit     ledger.Parts
	word    string
	differs func(a, b *ledger.Entry) bool
}

// parts are all parts. State, Status and what each write changes are in none.
var parts = []part{
	{0, "identity", func(a, b *ledger.Entry) bool {
		return a.Key != b.Key || !a.CreatedAt.Equal(b.CreatedAt) || !reflect.DeepEqual(a.Extra, b.Extra)
	}},
	{ledger.PartRequest, "request", func(a, b *ledger.Entry) bool {
		return a.Merchant != b.Merchant || a.Request != b.Request || routeDiffers(a.Route, b.Route) ||
			!a.ExpireAt.Equal(b.ExpireAt)
	}},
	{ledger.PartAmount, "amount", func(a, b *ledger.Entry) bool { return a.Amount != b.Amount }},
	{ledger.PartOwner, "owner and lease", func(a, b *ledger.Entry) bool {
		return a.Owner != b.Owner || !a.LeaseUntil.Equal(b.LeaseUntil) || !a.SentAt.Equal(b.SentAt) ||
			!a.ReservedAt.Equal(b.ReservedAt)
	}},
	{ledger.PartProof, "proof", func(a, b *ledger.Entry) bool {
		return a.EverUnknown != b.EverUnknown || a.NothingSent != b.NothingSent || a.ForeignKey != b.ForeignKey ||
			a.ReleasedBefore != b.ReleasedBefore
	}},
	{ledger.PartAttempts, "call attempts", func(a, b *ledger.Entry) bool {
		return !slices.Equal(a.Call.Attempts, b.Call.Attempts)
	}},
	{ledger.PartOperator, "operator's id", func(a, b *ledger.Entry) bool {
		return a.OperatorReference != b.OperatorReference || a.LateReference != b.LateReference ||
			a.Payer != b.Payer || a.Outbox.NotifToken != b.Outbox.NotifToken
	}},
	{ledger.PartDriverData, "driver's data", func(a, b *ledger.Entry) bool { return a.DriverData != b.DriverData }},
	{ledger.PartResponse, "response", func(a, b *ledger.Entry) bool {
		return a.Response.Status != b.Response.Status || !bytes.Equal(a.Response.Body, b.Response.Body)
	}},
	{ledger.PartFinal, "final time", func(a, b *ledger.Entry) bool {
		return !a.FinalAt.Equal(b.FinalAt) || a.FailureReason != b.FailureReason
	}},
	{ledger.PartClaim, "claim", func(a, b *ledger.Entry) bool { return a.Claim != b.Claim }},
	{ledger.PartConflicts, "conflicts", func(a, b *ledger.Entry) bool {
		return !slices.Equal(a.Conflicts, b.Conflicts)
	}},
	{ledger.PartPoll, "next lookup", func(a, b *ledger.Entry) bool { return a.Poll != b.Poll }},
	{ledger.PartAddress, "address", func(a, b *ledger.Entry) bool {
		return a.Outbox.URL != b.Outbox.URL || a.Outbox.From != b.Outbox.From
	}},
	{ledger.PartOutbox, "outbox", func(a, b *ledger.Entry) bool {
		isSame := func(x, y ledger.Notification) bool {
			x.RelayNotified = y.RelayNotified // each write records it
			return x == y
		}
		return !slices.EqualFunc(a.Outbox.Waiting, b.Outbox.Waiting, isSame) ||
			a.Outbox.UnrecordedAttempts != b.Outbox.UnrecordedAttempts
	}},
	{ledger.PartDeliveries, "deliveries", func(a, b *ledger.Entry) bool {
		return !slices.Equal(a.Outbox.Delivered, b.Outbox.Delivered) ||
			!slices.Equal(a.Outbox.FailedAttempts, b.Outbox.FailedAttempts)
	}},
	{ledger.PartReplays, "replays", func(a, b *ledger.Entry) bool {
		return !slices.Equal(a.Outbox.Replays, b.Outbox.Replays)
	}},
	{ledger.PartUserSMS, "payer's SMS", func(a, b *ledger.Entry) bool { return a.UserSMS != b.UserSMS }},
	{ledger.PartManual, "manual resolution", func(a, b *ledger.Entry) bool { return a.Manual != b.Manual }},
	{ledger.PartBinding, "binding", func(a, b *ledger.Entry) bool { return !a.BindAt.Equal(b.BindAt) }},
	{ledger.PartTimeline, "timeline", func(a, b *ledger.Entry) bool { return a.Timeline != b.Timeline }},
	{ledger.OtherItem, "another item", func(_, _ *ledger.Entry) bool { return false }},
}

// routeDiffers compares two routes.
func routeDiffers(a, b ledger.Route) bool {
	return a.Country != b.Country || a.Operator != b.Operator || a.Account != b.Account ||
		a.UpstreamKey != b.UpstreamKey || !slices.Equal(a.CallbackKeys, b.CallbackKeys)
}

// Words names the parts of a set.
func Words(of ledger.Parts) (named []string) {
	for _, p := range parts {
		if of&p.bit != 0 {
			named = append(named, p.word)
		}
	}
	return named
}

// ChangedParts returns the words of the parts that differ.
func ChangedParts(before, after *ledger.Entry) (changed []string) {
	for _, p := range parts {
		if p.differs(before, after) {
			changed = append(changed, p.word)
		}
	}
	return changed
}
