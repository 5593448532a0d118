package entries

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// dayReader reads the keys of a merchant's day page by page, in the order of creation. It merges the partitions of the
// day (decision "day-shards").
type dayReader struct {
	parts []dayPart
}

// dayPart is one partition of a day.
type dayPart struct {
	query ledger.DayQuery // the next page of the table
	ready []ledger.DayKey // read and not yet taken
	ended bool            // no page follows
	// taken is the cursor after the last key that was taken; "" for none.
	taken string
}

// positionSeparator separates the positions of the partitions in a cursor. No id of a transaction has it, and a shell
// leaves it as it is.
const positionSeparator = ","

// newDayReader returns a reader that begins at a cursor of that day. A cursor of fewer partitions, from before the
// merchant had more, begins the others at their start.
func newDayReader(p *merchant.Profile, day time.Time, cursor string) (*dayReader, error) {
	positions := strings.Split(cursor, positionSeparator)
	if len(positions) > p.ReadDayShards() {
		return nil, errors.New("the cursor has more partitions than the merchant's days")
	}
	r := &dayReader{parts: make([]dayPart, p.ReadDayShards())}
	for shard := range r.parts {
		part := &r.parts[shard]
		part.query = ledger.DayQuery{MerchantID: p.ID, Day: day, Shard: shard, Limit: PageSize}
		if shard < len(positions) {
			part.query.Cursor, part.taken = positions[shard], positions[shard]
		}
	}
	return r, nil
}

// page reads the next page. next is the cursor of the following one, "" at the end of the day.
func (r *dayReader) page(s *session.Session) (keys []ledger.Key, next string, err error) {
	for len(keys) < PageSize {
		if err := r.fill(s); err != nil {
			return nil, "", err
		}
		part := r.first()
		if part == nil {
			return keys, "", nil
		}
		keys = append(keys, part.ready[0].Key)
		part.taken, part.ready = part.ready[0].Cursor(), part.ready[1:]
	}
	if !slices.ContainsFunc(r.parts, func(p dayPart) bool { return len(p.ready) > 0 || !p.ended }) {
		return keys, "", nil
	}
	positions := make([]string, len(r.parts))
	for i, part := range r.parts {
		positions[i] = part.taken
	}
	return keys, strings.Join(positions, positionSeparator), nil
}

// fill reads the next page of each partition without a ready key, concurrently.
func (r *dayReader) fill(s *session.Session) error {
	faults := make([]error, len(r.parts))
	var group sync.WaitGroup
	for i := range r.parts {
		if part := &r.parts[i]; len(part.ready) == 0 && !part.ended {
			group.Go(func() { faults[i] = part.read(s) })
		}
	}
	group.Wait()
	return errors.Join(faults...)
}

// read reads pages of the table until a key is ready or the partition ends.
func (p *dayPart) read(s *session.Session) (err error) {
	for len(p.ready) == 0 && !p.ended {
		p.ready, p.query.Cursor, err = s.Stores.Ledger.Day(s, p.query)
		if err != nil {
			return err
		}
		p.ended = p.query.Cursor == ""
	}
	return nil
}

// first returns the partition with the earliest ready key, nil for none.
func (r *dayReader) first() (first *dayPart) {
	for i := range r.parts {
		part := &r.parts[i]
		if len(part.ready) > 0 && (first == nil || compareDayKeys(part.ready[0], first.ready[0]) < 0) {
			first = part
		}
	}
	return first
}

func compareDayKeys(a, b ledger.DayKey) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Key.String(), b.Key.String()))
}
