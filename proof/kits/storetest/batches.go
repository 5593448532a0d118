package storetest

import (
	"context"

	"mobilegateway/shared/ledger"
)

// Batches reads batches from a store that a test replaces, one entry after the other.
type Batches struct{ ledger.Reader }

// GetBatch reads the entries that exist. It leaves none unread.
func (b Batches) GetBatch(
	ctx context.Context, keys []ledger.Key,
) (found map[ledger.Key]*ledger.Entry, unread []ledger.Key, err error) {
	found = map[ledger.Key]*ledger.Entry{}
	for _, key := range keys {
		e, err := b.Get(ctx, key)
		if err != nil {
			return nil, nil, err
		}
		if e != nil {
			found[key] = e
		}
	}
	return found, nil, nil
}
