package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

// Ledger is the ledger's store. Any number of goroutines may use it.
type Ledger struct {
	Faults
	store            *dynamo.Store
	client           *model.Client
	concurrentWrites int
	violations       []error
}

var (
	_ ledger.Writer   = (*Ledger)(nil)
	_ ledger.Reader   = (*Ledger)(nil)
	_ ledger.DueQueue = (*Ledger)(nil)
	_ ledger.DayIndex = (*Ledger)(nil)

	_ ledger.BatchReader    = (*Ledger)(nil)
	_ ledger.ReferenceIndex = (*Ledger)(nil)
	_ ledger.MessageIndex   = (*Ledger)(nil)
)

// Test is the part of a test that a store needs.
type Test interface {
	Cleanup(end func())
	Error(args ...any)
}

// NewLedger makes an empty ledger without faults. At the end of the test it reports each write that differs from its
// row in the table of transitions. In tests of the store itself, t is nil: it reports nothing.
func NewLedger(t Test) *Ledger {
	client := newClient()
	l := &Ledger{store: dynamo.New(client, table), client: client}
	if t == nil {
		return l
	}
	t.Cleanup(func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		for _, err := range l.violations {
			t.Error(err)
		}
	})
	return l
}

// Insert implements ledger.Writer.
func (l *Ledger) Insert(ctx context.Context, e *ledger.Entry, t ledger.Transition) (*ledger.Entry, error) {
	return run(ctx, &l.Faults, Call{Operation: Insert, Key: e.Key}, func() (*ledger.Entry, error) {
		existing, err := l.store.Insert(ctx, e, t)
		if err == nil && existing == nil {
			l.check(nil, e.Key, t)
		}
		return existing, err
	})
}

// Replace implements ledger.Writer.
func (l *Ledger) Replace(ctx context.Context, e *ledger.Entry, t ledger.Transition) (*ledger.Entry, error) {
	call := Call{Operation: Replace, Key: e.Key}
	call.writeConcurrently = func() error { return l.writeConcurrently(ctx, e.Key) }
	return run(ctx, &l.Faults, call, func() (*ledger.Entry, error) {
		before, err := l.store.Get(ctx, e.Key)
		if err != nil {
			return nil, err
		}
		existing, err := l.store.Replace(ctx, e, t)
		if err == nil && existing == nil && before.Version < e.Version { // else it was sent again
			l.check(before, e.Key, t)
		}
		return existing, err
	})
}

// check keeps the violation of a write that is stored.
func (l *Ledger) check(before *ledger.Entry, key ledger.Key, t ledger.Transition) {
	after, err := l.store.Get(context.Background(), key)
	mustSucceed("read "+key.String(), err)
	if err := ledgertest.CheckWrite(before, after, t); err != nil {
		l.violations = append(l.violations, err)
	}
}

// writeConcurrently is another write of the same content.
func (l *Ledger) writeConcurrently(ctx context.Context, key ledger.Key) error {
	stored, err := l.store.Get(ctx, key)
	if err != nil || stored == nil {
		return err
	}
	l.concurrentWrites++
	stored.Version++
	stored.Writer = fmt.Sprintf("another-%d", l.concurrentWrites)
	_, err = l.store.Replace(ctx, stored, ledger.Reschedule)
	return err
}

// ClaimReference implements ledger.Writer.
func (l *Ledger) ClaimReference(ctx context.Context, charge *ledger.Entry) (string, error) {
	return run(ctx, &l.Faults, Call{Operation: ClaimReference, Key: charge.Key}, func() (string, error) {
		return l.store.ClaimReference(ctx, charge)
	})
}

// BindMessage implements ledger.MessageIndex.
func (l *Ledger) BindMessage(
	ctx context.Context, account, reference, id string, expireAt time.Time,
) ([]ledger.Status, error) {
	call := Call{Operation: BindMessage, Key: ledger.Key{Kind: ledger.SMS, ID: id}}
	return run(ctx, &l.Faults, call, func() ([]ledger.Status, error) {
		return l.store.BindMessage(ctx, account, reference, id, expireAt)
	})
}

// FindMessage implements ledger.MessageIndex.
func (l *Ledger) FindMessage(
	ctx context.Context, account, reference string, statuses []ledger.Status, expireAt time.Time,
) (id string, early []ledger.Status, err error) {
	_, err = run(ctx, &l.Faults, Call{Operation: FindMessage}, func() (string, error) {
		id, early, err = l.store.FindMessage(ctx, account, reference, statuses, expireAt)
		return id, err
	})
	if err != nil {
		return "", nil, err
	}
	return id, early, nil
}

// Get implements ledger.Reader.
func (l *Ledger) Get(ctx context.Context, key ledger.Key) (*ledger.Entry, error) {
	return run(ctx, &l.Faults, Call{Operation: Get, Key: key}, func() (*ledger.Entry, error) {
		return l.store.Get(ctx, key)
	})
}

// GetAll implements ledger.BatchReader. It is one call, as a batch is.
func (l *Ledger) GetAll(ctx context.Context, keys []ledger.Key) ([]*ledger.Entry, error) {
	return run(ctx, &l.Faults, Call{Operation: GetAll}, func() ([]*ledger.Entry, error) {
		entries := make([]*ledger.Entry, len(keys))
		for i, key := range keys {
			e, err := l.store.Get(ctx, key)
			if err != nil {
				return nil, err
			}
			entries[i] = e
		}
		return entries, nil
	})
}

// maxBatch is the service's limit of a batch.
const maxBatch = 100

// GetBatch reads entries in one call, as the tool's store does: those that exist, by their keys. It leaves none unread.
func (l *Ledger) GetBatch(
	ctx context.Context, keys []ledger.Key,
) (found map[ledger.Key]*ledger.Entry, unread []ledger.Key, err error) {
	found, err = run(ctx, &l.Faults, Call{Operation: GetBatch}, func() (map[ledger.Key]*ledger.Entry, error) {
		if len(keys) > maxBatch {
			return nil, fmt.Errorf("storetest: a batch of %d keys: the service reads %d", len(keys), maxBatch)
		}
		entries := map[ledger.Key]*ledger.Entry{}
		for _, key := range keys {
			e, err := l.store.Get(ctx, key)
			if err != nil {
				return nil, err
			}
			if e != nil {
				entries[key] = e
			}
		}
		return entries, nil
	})
	return found, nil, err
}

// ChargeOfReference implements ledger.ReferenceIndex.
func (l *Ledger) ChargeOfReference(ctx context.Context, merchantID, referenceCode string) (string, error) {
	key := ledger.Key{Kind: ledger.Reference, ID: ledger.ReferenceID(merchantID, referenceCode)}
	return run(ctx, &l.Faults, Call{Operation: Get, Key: key}, func() (string, error) {
		return l.store.ChargeOfReference(ctx, merchantID, referenceCode)
	})
}

// DueKeys implements ledger.DueQueue. This index never lags.
func (l *Ledger) DueKeys(ctx context.Context, query ledger.DueQuery) (page []ledger.DueKey, next string, err error) {
	page, err = run(ctx, &l.Faults, Call{Operation: DueKeys}, func() (keys []ledger.DueKey, err error) {
		keys, next, err = l.store.DueKeys(ctx, query)
		return keys, err
	})
	return page, next, err
}

// MoveDue implements ledger.DueQueue.
func (l *Ledger) MoveDue(ctx context.Context, key ledger.Key, now, dueAt time.Time) error {
	call := Call{Operation: MoveDue, Key: key}
	return runError(ctx, &l.Faults, call, func() error { return l.store.MoveDue(ctx, key, now, dueAt) })
}

// Day implements ledger.DayIndex.
func (l *Ledger) Day(ctx context.Context, query ledger.DayQuery) (page []ledger.DayKey, next string, err error) {
	page, err = run(ctx, &l.Faults, Call{Operation: Day}, func() (keys []ledger.DayKey, err error) {
		keys, next, err = l.store.Day(ctx, query)
		return keys, err
	})
	return page, next, err
}

// All returns every entry in the order of the keys.
func (l *Ledger) All() []*ledger.Entry {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var entries []*ledger.Entry
	for key, item := range l.client.Database.Items(table) {
		e, err := dynamo.Decode(item)
		mustSucceed("decode "+key, err)
		if e.Kind != ledger.Reference {
			entries = append(entries, e)
		}
	}
	return entries
}

// Overwrite stores an entry without any condition, for tests that begin in the middle of a life.
func (l *Ledger) Overwrite(e *ledger.Entry) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	item, err := dynamo.Encode(e)
	mustSucceed("encode "+e.Key.String(), err)
	_, err = l.client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
	mustSucceed("store "+e.Key.String(), err)
}
