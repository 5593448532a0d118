package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"mobilegateway/shared/ledger"
)

// pageSize is the number of due keys that one query reads.
const pageSize = 1000

// shardReader reads the due keys of one shard page by page. Every second pass starts at another point of the due range.
// So entries that do not move hide no others, also if a pass does not get to the end.
type shardReader struct {
	query ledger.DueQuery // the next page
	first bool            // no page was read yet
	// behind is the range that follows. skipped are the keys of the first page that come before it. ready are
	// those keys once they are next.
	behind         *ledger.DueQuery
	skipped, ready []ledger.Key
	ended          bool // no range follows
	done           bool
	err            error
}

// part is one of several sweeps that divide the shards of a minute: Number, from 0 to Count-1.
type part struct {
	Number int `json:"part"`
	Count  int `json:"of"`
}

// parsePart reads the part from the input of the sweep's schedule in template.yaml. Any other event is for all shards.
func parsePart(event []byte) part {
	var p part
	if err := json.Unmarshal(event, &p); err != nil || p.Number < 0 || p.Number >= p.Count {
		return part{Count: 1}
	}
	return p
}

// newShardReaders returns one reader for each shard: those of the pass's own part, and the others. The others read only
// what has been due for longer than an interval. So each shard is processed also if its own sweep does not run, and
// sweeps of the same minute do not process the same entries.
func (p *pass) newShardReaders(share part) (own, others []*shardReader) {
	for shard := range ledger.DueShards {
		query := ledger.DueQuery{Shard: shard, Before: p.startedAt, Limit: pageSize}
		if shard%share.Count == share.Number {
			own = append(own, &shardReader{query: query, first: true})
			continue
		}
		query.Before = p.startedAt.Add(-p.SweepInterval)
		others = append(others, &shardReader{query: query, first: true})
	}
	return own, others
}

// readPages reads the next page of each shard concurrently. more is false once all shards are read.
func (p *pass) readPages(ctx context.Context, readers []*shardReader) (keys []ledger.Key, more bool) {
	pages := make([][]ledger.Key, len(readers))
	var group sync.WaitGroup
	for i, reader := range readers {
		if !reader.done {
			more = true
			p.Start.Go(&group, func() { pages[i] = reader.read(ctx, p.Queue, p.startPoint()) })
		}
	}
	group.Wait()
	longest := 0
	for _, page := range pages {
		longest = max(longest, len(page))
	}
	for at := range longest { // the oldest of all shards first
		for _, page := range pages {
			if at < len(page) {
				keys = append(keys, page[at])
			}
		}
	}
	return keys, more
}

// read reads the next page. start is the start point in the due range, 0 for the oldest entry.
func (r *shardReader) read(ctx context.Context, queue ledger.DueQueue, start int64) []ledger.Key {
	if keys := r.ready; len(keys) > 0 {
		r.ready, r.done = nil, r.ended
		return keys
	}
	page, cursor, err := queue.DueKeys(ctx, r.query)
	if err != nil {
		r.done, r.err = true, err
		return nil
	}
	keys := make([]ledger.Key, len(page))
	for i, key := range page {
		keys[i] = key.Key
	}
	startsElsewhere := r.first && start > 0 && cursor != "" && len(page) > 0
	r.first, r.query.Cursor = false, cursor
	if startsElsewhere {
		from := r.startElsewhere(page, start)
		r.skipped, keys = keys[:from], keys[from:]
	}
	if r.query.Cursor == "" && !startsElsewhere {
		r.nextRange()
	}
	return keys
}

// startElsewhere makes the reader continue at a point of the due range, and read the part before it at the end. It
// returns the position of that point in the first page.
func (r *shardReader) startElsewhere(page []ledger.DueKey, point int64) int {
	oldest := page[0].DueAt
	span := r.query.Before.Sub(oldest).Milliseconds()
	start := oldest.Add(time.Duration(span*point/startPoints) * time.Millisecond)
	from := slices.IndexFunc(page, func(key ledger.DueKey) bool { return !key.DueAt.Before(start) })
	if from >= 0 {
		return from
	}
	behind := r.query
	behind.Before = start.Add(-time.Millisecond)
	r.behind = &behind
	r.query.From, r.query.Cursor = start, ""
	return len(page)
}

// nextRange continues with the keys and the range that the pass has not started with.
func (r *shardReader) nextRange() {
	r.ready, r.skipped = r.skipped, nil
	r.ended = r.behind == nil
	r.done = r.ended && len(r.ready) == 0
	if r.behind != nil {
		r.query, r.behind = *r.behind, nil
	}
}

// startPoints is the number of points into which startPoint divides the due range.
const startPoints = 1 << 16

// startPoint is where a pass starts in the due range: at the oldest entry in every second pass, else at a point that
// differs from pass to pass. Multiples of the golden ratio, here as a fraction of 32 bits, spread evenly.
func (p *pass) startPoint() int64 {
	const goldenRatio, bits = 2654435769, 32
	number := p.startedAt.UnixNano() / int64(max(p.SweepInterval, time.Second))
	if number%2 == 0 {
		return 0
	}
	return (number / 2 * goldenRatio) & (1<<bits - 1) * startPoints >> bits
}

// readErrors are the errors of the shards that could not be read.
func readErrors(readers []*shardReader) error {
	var errs []error
	for _, reader := range readers {
		errs = append(errs, reader.err)
	}
	return errors.Join(errs...)
}
