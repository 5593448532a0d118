package ledger

import (
	"context"
	"time"

	"mobilegateway/shared/logsafe"
)

// ErrNotFound is returned for a change of an entry that does not exist.
var ErrNotFound = logsafe.New("ledger: no such entry")

// Writer is the part of a store that reserves and changes entries. A write whose response was lost recognises itself by
// its Writer token and Version; an empty token recognises nothing. After an error it is unknown whether the write was
// applied.
type Writer interface {
	// Insert stores a new entry (Version 1) in one conditional put. Its key must be free, or belong to an entry with an
	// ExpireAt not after e.UpdatedAt. It returns nil if the entry is stored, else the existing entry. t is for tests:
	// nothing of it is stored.
	Insert(ctx context.Context, e *Entry, t Transition) (existing *Entry, err error)

	// Replace stores e in one conditional put. The stored entry must have the version e.Version-1. It returns nil if e
	// is stored, else the existing entry; ErrNotFound if there is none. t is as for Insert.
	Replace(ctx context.Context, e *Entry, t Transition) (existing *Entry, err error)

	// ClaimReference binds the referenceCode of a charge to it in one conditional put. The reference must be free,
	// bound to this charge, or expired at the charge's UpdatedAt. It expires with the charge. It returns the id of the
	// charge that owns the reference afterwards.
	ClaimReference(ctx context.Context, charge *Entry) (ownerChargeID string, err error)
}

// Reader is the part of a store that reads entries.
type Reader interface {
	// Get reads one entry, strongly consistent; nil if there is none.
	Get(ctx context.Context, key Key) (*Entry, error)
}

// BatchReader is the part of a store that reads many entries at once.
type BatchReader interface {
	// GetAll reads the entries of the keys, in their order, each strongly consistent; nil for a key without an entry.
	GetAll(ctx context.Context, keys []Key) ([]*Entry, error)
}

// ErrUndecodable is wrapped by the error of a read whose item is not an entry that this version can decode.
var ErrUndecodable = logsafe.New("the stored entry cannot be decoded")

// DueQuery selects a page of a shard's due entries, oldest first: those due between From and Before, both included,
// after Cursor. A zero From and an empty Cursor are the start.
type DueQuery struct {
	Shard        int
	From, Before time.Time
	Cursor       string
	Limit        int
}

// DueKey is the key of a due entry, with its time in the index.
type DueKey struct {
	Key
	DueAt time.Time
}

// DueQueue is the part of a store that the sweep reads.
type DueQueue interface {
	// DueKeys lists one page; next is the cursor of the following page, "" at the end. It costs one query of the sparse
	// index. The index lags: read the entry before acting.
	DueKeys(ctx context.Context, query DueQuery) (keys []DueKey, next string, err error)

	// MoveDue moves the due time of an item without decoding it, if it is due at now. It is for an entry that cannot be
	// decoded or changed, so that it does not stay at the head of the queue. A concurrent write is not lost.
	MoveDue(ctx context.Context, key Key, now, dueAt time.Time) error
}

// DayQuery selects a page of one partition of a merchant's UTC day, after Cursor; "" is the start. From and Last, both
// included, are times of that day, which zero leaves open.
type DayQuery struct {
	MerchantID string
	Day        time.Time
	Shard      int
	From, Last time.Time
	Newest     bool // the newest first, from the end of the partition
	Cursor     string
	Limit      int
}

// DayKey is the key of an entry of a day, with the time of its creation.
type DayKey struct {
	Key
	CreatedAt time.Time
}

// Cursor is the cursor of a page that begins after the key.
func (k DayKey) Cursor() string { return DaySort(k.CreatedAt) + "#" + k.Key.String() }

// DayIndex is the part of a store that lists, exports and replays by time.
type DayIndex interface {
	// Day lists the keys of a partition in the order of creation, or in its reverse, one page per call; next is "" at
	// the end.
	Day(ctx context.Context, query DayQuery) (keys []DayKey, next string, err error)
}

// ReferenceIndex is the part of a store that finds a charge by its merchant's referenceCode.
type ReferenceIndex interface {
	// ChargeOfReference returns the id of the charge that owns a merchant's referenceCode, "" for none. It is one read,
	// strongly consistent.
	ChargeOfReference(ctx context.Context, merchantID, referenceCode string) (chargeID string, err error)
}

// MessageIndex is the part of a store that finds a message by its operator's id, for operators that send the receipts
// of all messages to one address (decision "static-callbacks"). account is what the message is pinned to.
type MessageIndex interface {
	// BindMessage stores which message (id of its entry) an operator's id names, and returns the statuses that were
	// reported before. It costs one write, and one more for each receipt that came first.
	BindMessage(ctx context.Context, account, reference, id string, expireAt time.Time) (early []Status, err error)

	// FindMessage returns the id of the message that an operator's id names, with the statuses that were reported
	// before it was bound. Until then the id is "", and the statuses are kept. It costs one refused or stored write.
	FindMessage(ctx context.Context, account, reference string, statuses []Status, expireAt time.Time) (
		id string, early []Status, err error)
}
