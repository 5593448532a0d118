// Package dayindex reads the keys of a merchant's day in the order of creation. It merges the partitions of the day
// (decision "day-shards").
//
// It reads no entries. Its invariant: a key that was there at the first page is read exactly once over all pages, also
// while new transactions arrive and while the merchant gets more partitions.
package dayindex

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
)

// Day selects a merchant's UTC day. Shards is the number of its partitions that are read, from 1. PageSize is how many
// keys one query requests.
type Day struct {
	MerchantID       string
	Day              time.Time
	Shards, PageSize int
}

// Reader reads the keys of a day. It belongs to one goroutine.
type Reader struct {
	index ledger.DayIndex
	parts []part
}

// part is one partition of a day.
type part struct {
	query ledger.DayQuery // the next page of the table
	ready []ledger.DayKey // read and not yet taken
	ended bool            // no page follows
	// taken is the cursor after the last key that was taken; "" for none.
	taken string
}

// positionSeparator separates the positions of the partitions in a cursor. No id of a transaction has it, and a shell
// leaves it as it is.
const positionSeparator = ","

// ErrCursor is wrapped by the error of a text that is not a cursor of the day.
var ErrCursor = logsafe.New("not a cursor of this list")

// NewReader returns a reader that begins at a cursor of that day, "" for its start. A cursor of fewer partitions, from
// before the merchant had more, begins the others at their start. The error wraps ErrCursor.
func NewReader(index ledger.DayIndex, of Day, cursor string) (*Reader, error) {
	positions := strings.Split(cursor, positionSeparator)
	if len(positions) > of.Shards {
		return nil, errors.Join(ErrCursor, logsafe.New("the cursor has more partitions than the merchant's days"))
	}
	r := &Reader{index: index, parts: make([]part, of.Shards)}
	for shard := range r.parts {
		p := &r.parts[shard]
		p.query = ledger.DayQuery{MerchantID: of.MerchantID, Day: of.Day, Shard: shard, Limit: of.PageSize}
		if shard < len(positions) {
			if !isPosition(positions[shard]) {
				return nil, ErrCursor
			}
			p.query.Cursor, p.taken = positions[shard], positions[shard]
		}
	}
	return r, nil
}

// maxIDBytes is the longest id of a position, in bytes: longer than any transaction's. DynamoDB refuses a key of over
// 2,048 bytes.
const maxIDBytes = 255

// isPosition reports whether a text has the form of DayKey.Cursor, or is "". A cursor comes from outside: a position
// that no transaction can have must not reach the table, whose refusal would count as our fault.
func isPosition(text string) bool {
	at, key, _ := strings.Cut(text, "#")
	kind, id, _ := strings.Cut(key, "#")
	parsed, err := time.Parse(ledger.DaySortLayout, at)
	isTransaction := slices.Contains([]ledger.Kind{ledger.Charge, ledger.Payment, ledger.SMS}, ledger.Kind(kind))
	return text == "" || err == nil && ledger.DaySort(parsed) == at && isTransaction &&
		id != "" && len(id) <= maxIDBytes && utf8.ValidString(id)
}

// Next takes the next key of the day; false at its end. It queries each partition without a ready key, concurrently.
func (r *Reader) Next(ctx context.Context) (key ledger.DayKey, found bool, err error) {
	if err := r.fill(ctx); err != nil {
		return ledger.DayKey{}, false, err
	}
	p := r.first()
	if p == nil {
		return ledger.DayKey{}, false, nil
	}
	key = p.ready[0]
	p.taken, p.ready = key.Cursor(), p.ready[1:]
	return key, true, nil
}

// Cursor is the cursor after the keys that were taken.
func (r *Reader) Cursor() string {
	positions := make([]string, len(r.parts))
	for i, p := range r.parts {
		positions[i] = p.taken
	}
	return strings.Join(positions, positionSeparator)
}

// Ended reports whether it is known, without a query, that no key is left.
func (r *Reader) Ended() bool {
	return !slices.ContainsFunc(r.parts, func(p part) bool { return len(p.ready) > 0 || !p.ended })
}

func (r *Reader) fill(ctx context.Context) error {
	faults := make([]error, len(r.parts))
	var group sync.WaitGroup
	for i := range r.parts {
		if p := &r.parts[i]; len(p.ready) == 0 && !p.ended {
			group.Go(func() { faults[i] = p.read(ctx, r.index) })
		}
	}
	group.Wait()
	return errors.Join(faults...)
}

// read reads pages of the table until a key is ready or the partition ends.
func (p *part) read(ctx context.Context, index ledger.DayIndex) (err error) {
	for len(p.ready) == 0 && !p.ended {
		p.ready, p.query.Cursor, err = index.Day(ctx, p.query)
		if err != nil {
			return err
		}
		p.ended = p.query.Cursor == ""
	}
	return nil
}

// first returns the partition with the earliest ready key, nil for none.
func (r *Reader) first() (first *part) {
	for i := range r.parts {
		p := &r.parts[i]
		if len(p.ready) > 0 && (first == nil || compare(p.ready[0], first.ready[0]) < 0) {
			first = p
		}
	}
	return first
}

func compare(a, b ledger.DayKey) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Key.String(), b.Key.String()))
}
