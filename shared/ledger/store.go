package ledger

import (
	"context"
	"errors"
	"time"
)

// ErrNotFound says that the entry to be changed is not there.
var ErrNotFound = errors.New("ledger: no such entry")

// Writer is what the operations need of a store.
type Writer interface {
	// Insert stores a new entry (Version 1) if its key is free, or held by an entry whose ExpireAt is not after
	// e.UpdatedAt: one conditional put. Taken: it returns the entry that is there, in the same call. Our own earlier put
	// whose answer was lost (same Writer, Version 1) counts as inserted. existing is nil when inserted. An error means
	// that nothing is known: the entry may or may not be there.
	Insert(ctx context.Context, e *Entry) (existing *Entry, err error)

	// An empty Writer recognises nothing.
	//
	// Replace stores e where the stored entry still has version e.Version-1: one conditional put. Otherwise it returns
	// the entry that is there. Our own earlier put (same Writer and Version) counts as stored. existing is nil when
	// stored; a missing entry is ErrNotFound.
	Replace(ctx context.Context, e *Entry) (existing *Entry, err error)

	// ClaimReference binds a merchant's referenceCode to a charge: one conditional put that also succeeds when the
	// reference is bound to this very charge. It returns the id of the charge that holds the reference afterwards.
	ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (holder string, err error)
}

// Reader is what the lookups need.
type Reader interface {
	// Get reads one entry, strongly consistent; nil when there is none.
	Get(ctx context.Context, key Key) (*Entry, error)
}

// DueQueue is what the sweep needs.
type DueQueue interface {
	// DueKeys lists up to limit keys of a shard that are due at or before a time, oldest first: one query of the sparse
	// index. The index lags: read the entry before acting.
	DueKeys(ctx context.Context, shard int, before time.Time, limit int) ([]Key, error)
}

// DayIndex is what listing, export and replay by time need.
type DayIndex interface {
	// Day lists a merchant's keys of one UTC day in the order of creation, a page at a time; next is "" at the end.
	Day(ctx context.Context, merchantID string, day time.Time, cursor string, limit int) (keys []Key, next string, err error)
}

// DueShards is the number of partitions of the due index. It may grow, never shrink.
const DueShards = 16
