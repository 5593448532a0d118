package ledger

import (
	"context"
	"errors"
	"time"
)

// ErrNotFound is returned for a change of an entry that does not exist.
var ErrNotFound = errors.New("ledger: no such entry")

// Writer is the part of a store that reserves and changes entries. A write whose response was lost recognises itself by
// its Writer token and Version; an empty token recognises nothing. After an error it is unknown whether the write was
// applied.
type Writer interface {
	// Insert stores a new entry (Version 1) in one conditional put. Its key must be free, or belong to an entry with an
	// ExpireAt not after e.UpdatedAt. It returns nil if the entry is stored, else the existing entry.
	Insert(ctx context.Context, e *Entry) (existing *Entry, err error)

	// Replace stores e in one conditional put. The stored entry must have the version e.Version-1. It returns nil if e
	// is stored, else the existing entry; ErrNotFound if there is none.
	Replace(ctx context.Context, e *Entry) (existing *Entry, err error)

	// ClaimReference binds a merchant's referenceCode to a charge in one conditional put. The reference must be free,
	// or bound to this charge. It returns the id of the charge that owns the reference afterwards.
	ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (ownerChargeID string, err error)
}

// Reader is the part of a store that reads entries.
type Reader interface {
	// Get reads one entry, strongly consistent; nil if there is none.
	Get(ctx context.Context, key Key) (*Entry, error)
}

// DueQueue is the part of a store that the sweep reads.
type DueQueue interface {
	// DueKeys lists up to limit keys of a shard that are due at or before a time, oldest first. It costs one query of
	// the sparse index. The index lags: read the entry before acting.
	DueKeys(ctx context.Context, shard int, before time.Time, limit int) ([]Key, error)
}

// DayIndex is the part of a store that lists, exports and replays by time.
type DayIndex interface {
	// Day lists a merchant's keys of one UTC day in the order of creation, one page per call; next is "" at the end.
	Day(ctx context.Context, merchantID string, day time.Time, cursor string, limit int) (
		keys []Key, next string, err error)
}

// DueShards is the number of partitions of the due index. It may grow, never shrink.
const DueShards = 16
