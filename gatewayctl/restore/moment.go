package restore

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
)

// Limits of the comparison of --at with the ledger.
const (
	maxEarlierLines = 1000 // log lines from before --at, the latest ones
	maxLaterDays    = 35   // days after --at: that of a point-in-time recovery
	laterPage       = 100  // entries that are read at once
	maxLaterPages   = 20   // of a partition
)

// earlierLine is a log line from before the moment whose request was stored. The ledger has one of its keys.
type earlierLine struct {
	at       time.Time
	merchant string
	key      string
	keys     []ledger.Key
}

// addEarlier adds a log line from before the moment, if it proves that its key was stored.
func (r *run) addEarlier(line logLine, at time.Time) {
	kind, of := ledger.Kind(line.Operation), r.shops[line.Merchant]
	isRequest := kind == ledger.Charge || kind == ledger.SMS || kind == ledger.Payment
	if !isRequest || of == nil || line.Status < 200 || line.Status > 299 || !isWhole(line.TransactionKey) {
		return
	}
	s := sighting{of: of, kind: kind}
	e := earlierLine{at: at, merchant: line.Merchant, key: line.TransactionKey}
	switch kind {
	case ledger.Payment:
		e.keys = []ledger.Key{s.withID(line.TransactionKey).key()}
	case ledger.Charge: // the line does not show which of the two its key is
		e.keys = append(e.keys, s.withKeys("", line.TransactionKey).key())
		fallthrough
	default:
		e.keys = append(e.keys, s.withKeys(line.TransactionKey, "").key())
	}
	if r.earlier = append(r.earlier, e); len(r.earlier) >= 2*maxEarlierLines {
		r.keepLatest()
	}
}

// keepLatest keeps the latest of the earlier lines, latest first.
func (r *run) keepLatest() {
	slices.SortStableFunc(r.earlier, func(a, b earlierLine) int { return b.at.Compare(a.at) })
	r.earlier = r.earlier[:min(len(r.earlier), maxEarlierLines)]
}

// checkMoment refuses a moment after that of the restore: the ledger then lacks what log lines from before --at have,
// and the keys between the two would count as present.
func (r *run) checkMoment() error {
	r.keepLatest()
	var keys []ledger.Key
	for _, line := range r.earlier {
		keys = append(keys, line.keys...)
	}
	slices.SortFunc(keys, compareKeys)
	present := map[ledger.Key]*ledger.Entry{}
	for batch := range slices.Chunk(slices.Compact(keys), dynamoitem.MaxBatch) {
		found, err := r.present(batch)
		if err != nil {
			return err
		}
		maps.Copy(present, found)
	}
	var lacking []earlierLine
	for _, line := range r.earlier {
		if !slices.ContainsFunc(line.keys, func(k ledger.Key) bool { return present[k] != nil }) {
			lacking = append(lacking, line)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	oldest := lacking[len(lacking)-1]
	return fmt.Errorf("--at %s is too late: the ledger lacks the keys of %s from before it, such as %s of %s at %s. "+
		"Give the moment to which this table was restored", output.FormatTime(r.At.Time),
		output.Plural(len(lacking), "log line"), oldest.key, oldest.merchant, output.FormatTime(oldest.at))
}

// neighbours are the transactions of the ledger next to the moment.
type neighbours struct {
	before time.Time // of the newest one until the moment, in its day or the day before; zero for none
	after  time.Time // of the first one after it that no check has stored; zero for none
}

// findNeighbours reads the transactions next to the moment.
func (r *run) findNeighbours() (found neighbours, err error) {
	atDay, today := r.At.UTC().Truncate(session.Day), r.Now().UTC().Truncate(session.Day)
	for _, of := range r.shops {
		for shard := range max(1, of.profile.ReadDayShards()) {
			query := ledger.DayQuery{MerchantID: of.profile.ID, Shard: shard}
			for _, day := range []time.Time{atDay, atDay.Add(-session.Day)} {
				at, err := r.newestOf(query, day)
				if err != nil {
					return found, err
				}
				if at.After(found.before) {
					found.before = at
				}
			}
			for day := atDay; !day.After(today) && day.Before(atDay.Add(maxLaterDays*session.Day)); day = day.Add(
				session.Day) {
				at, err := r.firstAfter(query, day)
				if err != nil {
					return found, err
				}
				if !at.IsZero() && (found.after.IsZero() || at.Before(found.after)) {
					found.after = at
				}
			}
		}
	}
	return found, nil
}

// newestOf returns the time of the newest transaction of a day until the moment, zero for none.
func (r *run) newestOf(query ledger.DayQuery, day time.Time) (time.Time, error) {
	query.Day, query.Newest, query.Limit = day, true, 1
	if r.At.Before(day.Add(session.Day)) {
		query.From, query.Last = day, r.At.UTC()
	}
	for {
		keys, next, err := r.Stores.Ledger.Day(r, query)
		if err != nil || len(keys) > 0 || next == "" {
			if len(keys) == 0 {
				return time.Time{}, err
			}
			return keys[0].CreatedAt, err
		}
		query.Cursor = next
	}
}

// firstAfter returns the time of the first transaction of a day after the moment that no check has stored, zero for
// none.
func (r *run) firstAfter(query ledger.DayQuery, day time.Time) (time.Time, error) {
	query.Day, query.Limit = day, laterPage
	if r.At.After(day) {
		query.From, query.Last = r.At.UTC().Add(time.Millisecond), day.Add(session.Day-time.Millisecond)
	}
	for range maxLaterPages {
		keys, next, err := r.Stores.Ledger.Day(r, query)
		if err != nil {
			return time.Time{}, err
		}
		var batch []ledger.Key
		for _, key := range keys {
			batch = append(batch, key.Key)
		}
		entries, err := r.present(batch)
		if err != nil {
			return time.Time{}, err
		}
		for _, key := range keys {
			if e := entries[key.Key]; e != nil && !e.Request.Restored() {
				return key.CreatedAt, nil
			}
		}
		if next == "" {
			break
		}
		query.Cursor = next
	}
	return time.Time{}, nil
}

// adviseMoment writes what the ledger has next to the moment.
func (r *run) adviseMoment() {
	switch before := r.near.before; {
	case before.IsZero():
		fmt.Fprintf(r.Stderr, "The ledger has no transaction of the two days before --at: check --at.\n")
	default:
		fmt.Fprintf(r.Stderr, "The newest transaction before --at is of %s.\n", output.FormatTime(before))
	}
	if !r.near.after.IsZero() {
		fmt.Fprintf(r.Stderr, "warning: the ledger has a transaction of %s, after --at: the functions have run since, "+
			"or --at is too early.\n", output.FormatTime(r.near.after))
	}
}
