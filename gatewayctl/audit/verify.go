package audit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// The faults that audit verify finds.
const (
	faultMalformed    = "malformed"     // the text is not a record
	faultMoved        = "moved"         // the record belongs to another place of the chain
	faultMissing      = "missing"       // no record has this sequence
	faultChanged      = "changed"       // the record is not its copy, or the next record was not written behind it
	faultOutsideChain = "outside-chain" // a record under a key of the older form, from after the beginning of the chain
	faultNoCopy       = "no-copy"       // neither this record nor a later one has a copy
	faultForeignCopy  = "foreign-copy"  // a line of the log is not a record
	faultNoStart      = "no-start"      // a completion that no command wrote: the log has no start of its change
)

// copiesKept is how long the log certainly has a copy, which template.yaml keeps for ten years. An older start may have
// none.
const copiesKept = 3600 * session.Day

// Fault is one fault. At is provedTime. The last fields are those of the record, or of its copy if only that one
// has them.
type Fault struct {
	Sequence int64     `json:"sequence,omitempty" col:"SEQUENCE"`
	Fault    string    `json:"fault" col:"FAULT"`
	Detail   string    `json:"detail,omitempty" col:"DETAIL"`
	At       time.Time `json:"at,omitzero" col:"AT"`
	Who      string    `json:"who,omitempty" col:"WHO"`
	What     string    `json:"what,omitempty" col:"WHAT"`
	Subject  string    `json:"subject,omitempty" col:"SUBJECT"`
	Outcome  string    `json:"outcome,omitempty" col:"OUTCOME"`
}

// Result is the comparison of the records with their copies.
type Result struct {
	Records     int     `json:"records"`
	Copies      int     `json:"copies"`
	WithoutCopy int     `json:"without_copy"`
	OlderForm   int     `json:"older_form"`
	Faults      []Fault `json:"faults"`
}

// auditComparison is the chain beside its copies.
type auditComparison struct {
	Result
	stored map[int64]auditlog.Entry
	copies map[int64][]auditlog.Entry // by sequence; each text once, in an order that does not change
	now    time.Time

	hasStart, hasCompletion map[string]bool // the IDs of changes whose start or completion has a copy
}

// Verify finds the faults of the chain. A copy proves the record, and by the chain all records before it: a record
// without a copy is a fault only behind the last copy.
func Verify(items []auditlog.Item, copies []string, now time.Time) Result {
	c := auditComparison{
		stored: map[int64]auditlog.Entry{}, copies: map[int64][]auditlog.Entry{}, now: now,
		hasStart: map[string]bool{}, hasCompletion: map[string]bool{},
		Result: Result{Copies: len(copies), Faults: []Fault{}},
	}
	for _, document := range slices.Sorted(slices.Values(copies)) {
		c.addCopy(document)
	}
	older := c.addItems(items)
	sequences := slices.AppendSeq(slices.Collect(maps.Keys(c.stored)), maps.Keys(c.copies))
	slices.Sort(sequences)
	lastProved, before := c.lastProved(), int64(0)
	for _, sequence := range slices.Compact(sequences) {
		switch first, last := before+1, sequence-1; {
		case first == last:
			c.add(first, faultMissing, "neither the table nor the log has it", auditlog.Record{})
		case first < last:
			detail := fmt.Sprintf("neither the table nor the log has %d to %d", first, last)
			c.add(first, faultMissing, detail, auditlog.Record{})
		}
		c.compare(sequence, sequence > lastProved)
		before = sequence
	}
	first, isBegun := c.stored[1]
	for _, e := range older {
		if !e.IsMalformed && (e.IsNumbered || isBegun && (e.Sequence != 0 || e.At.After(first.At))) {
			c.add(0, faultOutsideChain, "an older gatewayctl wrote it, or another program", e.Record)
		}
	}
	return c.Result
}

// addCopy adds a copy. Its place is what the record itself says.
func (c *auditComparison) addCopy(document string) {
	e := auditlog.ReadItem(auditlog.Item{Document: document})
	if e.IsMalformed || e.Sequence <= 0 {
		c.add(0, faultForeignCopy, "a line of the log is not a record of the chain", auditlog.Record{})
		return
	}
	if same := c.copies[e.Sequence]; !e.IsAmong(same) {
		c.copies[e.Sequence] = append(same, e)
		isStart := e.Outcome == auditlog.OutcomeStarted
		c.hasStart[e.ID] = c.hasStart[e.ID] || isStart
		c.hasCompletion[e.ID] = c.hasCompletion[e.ID] || !isStart
	}
}

// addItems adds the items of the chain, and returns those of the older form.
func (c *auditComparison) addItems(items []auditlog.Item) (older []auditlog.Entry) {
	for _, item := range items {
		e := auditlog.ReadItem(item)
		if e.IsChained {
			c.Records++
			c.stored[e.Link.Sequence] = e
			continue
		}
		c.OlderForm++
		older = append(older, e)
		if e.IsMalformed {
			c.add(0, faultMalformed, item.Key+" is not a record", auditlog.Record{})
		}
	}
	return older
}

// lastProved returns the sequence of the last record that equals its copy.
func (c *auditComparison) lastProved() (last int64) {
	for sequence, e := range c.stored {
		if e.IsAmong(c.copies[sequence]) {
			last = max(last, sequence)
		}
	}
	return last
}

// compare compares the record of a sequence with its copies and its neighbour.
func (c *auditComparison) compare(sequence int64, isBehindProof bool) {
	e, isStored := c.stored[sequence]
	copies := c.copies[sequence]
	if !isStored {
		for _, other := range copies {
			c.add(sequence, faultMissing, "only the log has it", other.Record)
		}
		return
	}
	switch next, hasNext := c.stored[sequence+1]; {
	case e.IsMalformed:
		c.add(sequence, faultMalformed, "the item is not a record", auditlog.Record{})
	case e.Sequence != sequence:
		c.add(sequence, faultMoved, fmt.Sprintf("it has the record of sequence %d", e.Sequence), e.Record)
	case hasNext && !next.IsMalformed && next.Sequence == sequence+1 && next.Previous != e.Link.Hash:
		c.add(sequence, faultChanged, "the next record was written behind another one", e.Record)
	case sequence == 1 && e.Previous != "":
		c.add(sequence, faultChanged, "the first record of a chain has no previous one", e.Record)
	}
	lacksStart := c.lacksStart(e, len(copies) > 0)
	if lacksStart {
		c.add(sequence, faultNoStart, "the log has no start of this change, or another completion of it", e.Record)
	}
	if len(copies) == 0 {
		c.WithoutCopy++
		if isBehindProof && !lacksStart {
			c.add(sequence, faultNoCopy, "a command ended before the copy, or another program wrote it", e.Record)
		}
	}
	for _, other := range copies {
		if other.Link.Hash != e.Link.Hash {
			r := other.Record
			texts := []string{output.FormatTime(r.At), r.Who, r.What, r.Subject, r.Why, r.Outcome, r.Detail}
			c.add(sequence, faultChanged, "the log has: "+output.JoinComma(texts), e.Record)
		}
	}
}

// lacksStart reports whether no command wrote a completion. A command completes a change only if its start has a copy,
// and only once. Unlike a record without a copy, this stays a fault when a later record has one.
func (c *auditComparison) lacksStart(e auditlog.Entry, hasCopy bool) bool {
	if e.IsMalformed || e.Outcome == auditlog.OutcomeStarted || c.hasStart[e.ID] &&
		(hasCopy || !c.hasCompletion[e.ID]) {
		return false
	}
	at := c.provedTime(e.Link.Sequence)
	return at.IsZero() || c.now.Sub(at) < copiesKept
}

// add adds a fault with what is known of the record.
func (c *auditComparison) add(sequence int64, fault, detail string, r auditlog.Record) {
	at := cmp.Or(r.CompletedAt, r.At)
	if sequence > 0 {
		at = c.provedTime(sequence)
	}
	c.Faults = append(c.Faults, Fault{sequence, fault, detail, at, r.Who, r.What, r.Subject, r.Outcome})
}

// provedTime returns the time of the first copy at or behind a sequence, zero without one. A forger of the table
// chooses the times in it, and an old time would hide the fault from --since.
func (c *auditComparison) provedTime(sequence int64) (at time.Time) {
	nearest := int64(math.MaxInt64)
	for copied := range c.copies {
		if copied >= sequence {
			nearest = min(nearest, copied)
		}
	}
	for _, e := range c.copies[nearest] {
		at = session.Latest(at, cmp.Or(e.CompletedAt, e.At))
	}
	return at
}
