// Package auditlog stores the audit records of gatewayctl.
//
// Each change, and each export, has two records in the merchant table, one before it and one after it, which nothing
// replaces. A record names the one before it, and has a copy outside the tables (decision "audit-chain").
package auditlog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
)

// The outcomes in audit records.
const (
	OutcomeStarted = "started" // written before the change; if it stays, it is unknown whether the change was made
	OutcomeDone    = "done"
	OutcomeFailed  = "failed"
	// OutcomeMalformed is shown for an item that is not a record.
	OutcomeMalformed = "malformed"
)

// Record is an audit record: who changed what, when and why. A change has two records with one ID: the started one, and
// the one that completes it. IDs sort by time. The field Who is the identity that AWS returned for the credentials; on
// a local run it is "local:" and the user of the machine. Credential is the id of the access key that signed the
// requests, which is also in AWS's own log. Sequence and Previous are the record's place in the chain (decision
// "audit-chain"). Records of the older form have neither, and one record for each change.
type Record struct {
	Sequence    int64     `json:"sequence,omitempty"`
	Previous    string    `json:"previous,omitempty"`
	ID          string    `json:"id"`
	At          time.Time `json:"at" col:"AT"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
	Who         string    `json:"who" col:"WHO"`
	Credential  string    `json:"credential,omitempty"`
	What        string    `json:"what" col:"WHAT"`
	Subject     string    `json:"subject" col:"SUBJECT"`
	Why         string    `json:"why" col:"WHY"`
	Outcome     string    `json:"outcome" col:"OUTCOME"`
	Detail      string    `json:"detail,omitempty" col:"DETAIL"`
}

// Item is a stored record: its key, and its text, which may be damaged.
type Item struct{ Key, Document string }

// Log stores audit records. Nothing replaces a stored record.
type Log interface {
	// Append stores a record behind the last one of the chain, and returns the item.
	Append(ctx context.Context, r Record) (Item, error)
	// Items returns all items in no order, damaged ones too.
	Items(ctx context.Context) ([]Item, error)
}

// Copies keeps a copy of each record outside the tables. The writer cannot change or delete a copy.
type Copies interface {
	// Write stores the document of a record that was written at a time.
	Write(ctx context.Context, at time.Time, document string) error
	// Documents returns all copies.
	Documents(ctx context.Context) ([]string, error)
}

// ErrNoCopies refuses a command that writes or compares copies.
var ErrNoCopies = output.UsageError(
	"AUDIT_LOG_GROUP is not set: name the log group of audit records, or use --local")

// auditPrefix begins the key of each audit item: "audit#<sequence>", in the older form "audit#<ID>".
const auditPrefix = "audit#"

// Link is a place in the chain: the sequence and the SHA-256 of the record there, zero before the first record.
type Link struct {
	Sequence int64
	Hash     string
}

// Next makes the item of a record behind the link.
func (l Link) Next(r Record) Item {
	r.Sequence, r.Previous = l.Sequence+1, l.Hash
	document, _ := json.Marshal(r) // texts, numbers and times of this century always have a JSON form
	return Item{chainKey(r.Sequence), string(document)}
}

// Limits of a chain. Without them one forged item far behind the end would be its end, or block every later record.
const (
	maxSequence = 999_999_999_999 // the highest number of chainKey's width
	maxGap      = 100             // how many records may be missing before the next one
)

// chainKey is the only key that a sequence has.
func chainKey(sequence int64) string { return fmt.Sprintf("%s%012d", auditPrefix, sequence) }

// linkTo returns the link to an item, by its key and its text as they are. Outside the chain it has only the hash.
func linkTo(item Item) (link Link, isChained bool) {
	sum := sha256.Sum256([]byte(item.Document))
	link.Hash = hex.EncodeToString(sum[:])
	sequence, err := strconv.ParseInt(strings.TrimPrefix(item.Key, auditPrefix), 10, 64)
	if err != nil || sequence <= 0 || sequence > maxSequence || item.Key != chainKey(sequence) {
		return link, false
	}
	link.Sequence = sequence
	return link, true
}

// LastLink returns the link to the last item before the first gap of more than maxGap sequences.
func LastLink(items []Item) (last Link) {
	links := []Link{}
	for _, item := range items {
		if link, isChained := linkTo(item); isChained {
			links = append(links, link)
		}
	}
	slices.SortFunc(links, func(a, b Link) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, link := range links {
		if link.Sequence-last.Sequence > maxGap+1 {
			break
		}
		last = link
	}
	return last
}

// Entry is an item as it was read.
type Entry struct {
	Record
	Link        Link
	IsChained   bool
	IsMalformed bool
	IsNumbered  bool // the key has only digits, as no key of the older form has
}

// IsAmong reports whether one of the copies has the same text.
func (e Entry) IsAmong(copies []Entry) bool {
	return slices.ContainsFunc(copies, func(other Entry) bool { return other.Link.Hash == e.Link.Hash })
}

// ReadItem decodes an item. One that is not a record is malformed, and named by its key.
func ReadItem(item Item) (e Entry) {
	e.Link, e.IsChained = linkTo(item)
	e.IsNumbered = strings.Trim(strings.TrimPrefix(item.Key, auditPrefix), "0123456789") == ""
	if json.Unmarshal([]byte(item.Document), &e.Record) == nil && e.ID != "" {
		return e
	}
	e.IsMalformed = true
	e.Record = Record{
		ID: strings.TrimPrefix(item.Key, auditPrefix), Subject: item.Key, Outcome: OutcomeMalformed,
		Detail: "the item is not a record: run gatewayctl audit verify",
	}
	return e
}

// Changes returns a record for each change, the one that completes it if there is one, the oldest first. An item that
// is not a record becomes a line of its own.
func Changes(items []Item) []Record {
	changes := map[string]Record{}
	for _, item := range items {
		e := ReadItem(item)
		id := e.ID
		if e.IsMalformed || !e.IsChained {
			id = item.Key // an item outside the chain must not hide a change of the same ID
		}
		switch stored, found := changes[id]; {
		case !found || stored.Outcome == OutcomeStarted:
			changes[id] = e.Record
		case e.Outcome != OutcomeStarted: // a second completion is forged, and must not hide the change either
			changes[item.Key] = e.Record
		}
	}
	return slices.SortedFunc(maps.Values(changes), func(a, b Record) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Sequence, b.Sequence), strings.Compare(a.ID, b.ID))
	})
}
