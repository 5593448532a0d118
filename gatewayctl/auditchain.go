package gatewayctl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// auditPrefix begins the key of each audit item: "audit#<sequence>", in the older form "audit#<ID>".
const auditPrefix = "audit#"

// chainLink is a place in the chain: the sequence and the SHA-256 of the record there, zero before the first record.
type chainLink struct {
	sequence int64
	hash     string
}

// next makes the item of a record behind the link.
func (l chainLink) next(r Record) AuditItem {
	r.Sequence, r.Previous = l.sequence+1, l.hash
	document, _ := json.Marshal(r) // texts, numbers and times of this century always have a JSON form
	return AuditItem{chainKey(r.Sequence), string(document)}
}

// Limits of a chain. Without them one forged item far behind the end would be its end, or block every later record.
const (
	maxSequence = 999_999_999_999 // the highest number of chainKey's width
	maxGap      = 100             // how many records may be missing before the next one
)

// chainKey is the only key that a sequence has.
func chainKey(sequence int64) string { return fmt.Sprintf("%s%012d", auditPrefix, sequence) }

// linkTo returns the link to an item, by its key and its text as they are. Outside the chain it has only the hash.
func linkTo(item AuditItem) (link chainLink, isChained bool) {
	sum := sha256.Sum256([]byte(item.Document))
	link.hash = hex.EncodeToString(sum[:])
	sequence, err := strconv.ParseInt(strings.TrimPrefix(item.Key, auditPrefix), 10, 64)
	if err != nil || sequence <= 0 || sequence > maxSequence || item.Key != chainKey(sequence) {
		return link, false
	}
	link.sequence = sequence
	return link, true
}

// lastLink returns the link to the last item before the first gap of more than maxGap sequences.
func lastLink(items []AuditItem) (last chainLink) {
	links := []chainLink{}
	for _, item := range items {
		if link, isChained := linkTo(item); isChained {
			links = append(links, link)
		}
	}
	slices.SortFunc(links, func(a, b chainLink) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, link := range links {
		if link.sequence-last.sequence > maxGap+1 {
			break
		}
		last = link
	}
	return last
}

type auditEntry struct {
	Record
	link        chainLink
	isChained   bool
	isMalformed bool
	isNumbered  bool // the key has only digits, as no key of the older form has
}

// isAmong reports whether one of the copies has the same text.
func (e auditEntry) isAmong(copies []auditEntry) bool {
	return slices.ContainsFunc(copies, func(other auditEntry) bool { return other.link.hash == e.link.hash })
}

// readAuditItem decodes an item. One that is not a record is malformed, and named by its key.
func readAuditItem(item AuditItem) (e auditEntry) {
	e.link, e.isChained = linkTo(item)
	e.isNumbered = strings.Trim(strings.TrimPrefix(item.Key, auditPrefix), "0123456789") == ""
	if json.Unmarshal([]byte(item.Document), &e.Record) == nil && e.ID != "" {
		return e
	}
	e.isMalformed = true
	e.Record = Record{
		ID: strings.TrimPrefix(item.Key, auditPrefix), Subject: item.Key, Outcome: outcomeMalformed,
		Detail: "the item is not a record: run gatewayctl audit verify",
	}
	return e
}

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
const copiesKept = 3600 * day

// auditFault is one fault. At is provedTime. The last fields are those of the record, or of its copy if only that one
// has them.
type auditFault struct {
	Sequence int64     `json:"sequence,omitempty" col:"SEQUENCE"`
	Fault    string    `json:"fault" col:"FAULT"`
	Detail   string    `json:"detail,omitempty" col:"DETAIL"`
	At       time.Time `json:"at,omitzero" col:"AT"`
	Who      string    `json:"who,omitempty" col:"WHO"`
	What     string    `json:"what,omitempty" col:"WHAT"`
	Subject  string    `json:"subject,omitempty" col:"SUBJECT"`
	Outcome  string    `json:"outcome,omitempty" col:"OUTCOME"`
}

type auditResult struct {
	Records     int          `json:"records"`
	Copies      int          `json:"copies"`
	WithoutCopy int          `json:"without_copy"`
	OlderForm   int          `json:"older_form"`
	Faults      []auditFault `json:"faults"`
}

// auditComparison is the chain beside its copies.
type auditComparison struct {
	auditResult
	stored map[int64]auditEntry
	copies map[int64][]auditEntry // by sequence; each text once, in an order that does not change
	now    time.Time

	hasStart, hasCompletion map[string]bool // the IDs of changes whose start or completion has a copy
}

// verifyAudit finds the faults of the chain. A copy proves the record, and by the chain all records before it: a record
// without a copy is a fault only behind the last copy.
func verifyAudit(items []AuditItem, copies []string, now time.Time) auditResult {
	c := auditComparison{
		stored: map[int64]auditEntry{}, copies: map[int64][]auditEntry{}, now: now,
		hasStart: map[string]bool{}, hasCompletion: map[string]bool{},
		auditResult: auditResult{Copies: len(copies), Faults: []auditFault{}},
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
			c.add(first, faultMissing, "neither the table nor the log has it", Record{})
		case first < last:
			detail := fmt.Sprintf("neither the table nor the log has %d to %d", first, last)
			c.add(first, faultMissing, detail, Record{})
		}
		c.compare(sequence, sequence > lastProved)
		before = sequence
	}
	first, isBegun := c.stored[1]
	for _, e := range older {
		if !e.isMalformed && (e.isNumbered || isBegun && (e.Sequence != 0 || e.At.After(first.At))) {
			c.add(0, faultOutsideChain, "an older gatewayctl wrote it, or another program", e.Record)
		}
	}
	return c.auditResult
}

// addCopy adds a copy. Its place is what the record itself says.
func (c *auditComparison) addCopy(document string) {
	e := readAuditItem(AuditItem{Document: document})
	if e.isMalformed || e.Sequence <= 0 {
		c.add(0, faultForeignCopy, "a line of the log is not a record of the chain", Record{})
		return
	}
	if same := c.copies[e.Sequence]; !e.isAmong(same) {
		c.copies[e.Sequence] = append(same, e)
		isStart := e.Outcome == OutcomeStarted
		c.hasStart[e.ID] = c.hasStart[e.ID] || isStart
		c.hasCompletion[e.ID] = c.hasCompletion[e.ID] || !isStart
	}
}

// addItems adds the items of the chain, and returns those of the older form.
func (c *auditComparison) addItems(items []AuditItem) (older []auditEntry) {
	for _, item := range items {
		e := readAuditItem(item)
		if e.isChained {
			c.Records++
			c.stored[e.link.sequence] = e
			continue
		}
		c.OlderForm++
		older = append(older, e)
		if e.isMalformed {
			c.add(0, faultMalformed, item.Key+" is not a record", Record{})
		}
	}
	return older
}

// lastProved returns the sequence of the last record that equals its copy.
func (c *auditComparison) lastProved() (last int64) {
	for sequence, e := range c.stored {
		if e.isAmong(c.copies[sequence]) {
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
	case e.isMalformed:
		c.add(sequence, faultMalformed, "the item is not a record", Record{})
	case e.Sequence != sequence:
		c.add(sequence, faultMoved, fmt.Sprintf("it has the record of sequence %d", e.Sequence), e.Record)
	case hasNext && !next.isMalformed && next.Sequence == sequence+1 && next.Previous != e.link.hash:
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
		if other.link.hash != e.link.hash {
			r := other.Record
			texts := []string{formatTime(r.At), r.Who, r.What, r.Subject, r.Why, r.Outcome, r.Detail}
			c.add(sequence, faultChanged, "the log has: "+joinComma(texts), e.Record)
		}
	}
}

// lacksStart reports whether no command wrote a completion. A command completes a change only if its start has a copy,
// and only once. Unlike a record without a copy, this stays a fault when a later record has one.
func (c *auditComparison) lacksStart(e auditEntry, hasCopy bool) bool {
	if e.isMalformed || e.Outcome == OutcomeStarted || c.hasStart[e.ID] && (hasCopy || !c.hasCompletion[e.ID]) {
		return false
	}
	at := c.provedTime(e.link.sequence)
	return at.IsZero() || c.now.Sub(at) < copiesKept
}

// add adds a fault with what is known of the record.
func (c *auditComparison) add(sequence int64, fault, detail string, r Record) {
	at := cmp.Or(r.CompletedAt, r.At)
	if sequence > 0 {
		at = c.provedTime(sequence)
	}
	c.Faults = append(c.Faults, auditFault{sequence, fault, detail, at, r.Who, r.What, r.Subject, r.Outcome})
}

// provedTime returns the time of the first copy at or behind a sequence, zero without one. A forger of the table
// chooses the times in it, and an old time would hide the fault from --since.
func (c *auditComparison) provedTime(sequence int64) (at time.Time) {
	nearest := int64(math.MaxInt64)
	for copied, documents := range c.copies {
		if copied < sequence || copied > nearest {
			continue
		}
		nearest, at = copied, time.Time{}
		for _, e := range documents {
			if done := cmp.Or(e.CompletedAt, e.At); done.After(at) {
				at = done
			}
		}
	}
	return at
}
