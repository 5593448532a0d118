package dynamo

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
)

// maxBatchRounds bounds the calls of GetAll for one batch: DynamoDB leaves keys out while it throttles.
const maxBatchRounds = 4

// BatchReader reads many entries of the ledger's table at once. It has no state; any number of goroutines may use it.
type BatchReader struct {
	client dynamoitem.BatchGetter
	table  string
}

var _ ledger.BatchReader = (*BatchReader)(nil)

// NewBatchReader makes the reader of a table.
func NewBatchReader(client dynamoitem.BatchGetter, table string) *BatchReader {
	return &BatchReader{client: client, table: table}
}

// readBatch begins each error of a batch. errThrottled is that of one from which DynamoDB has left keys out each time.
const readBatch = "ledger: reading several entries"

var errThrottled = logsafe.New("the table throttles batches")

// GetAll implements ledger.BatchReader: one GetBatch for each 100 keys, and one more for keys that DynamoDB leaves out.
func (r *BatchReader) GetAll(ctx context.Context, keys []ledger.Key) ([]*ledger.Entry, error) {
	found := map[ledger.Key]*ledger.Entry{}
	for batch := range slices.Chunk(keys, dynamoitem.MaxBatch) {
		left := slices.SortedFunc(slices.Values(batch), func(a, b ledger.Key) int {
			return cmp.Compare(a.String(), b.String())
		})
		left = slices.Compact(left) // BatchGetItem refuses a key that is named twice
		for round := 0; len(left) > 0; round++ {
			if round == maxBatchRounds {
				return nil, dynamoitem.DescribeError(readBatch, errThrottled)
			}
			read, unread, err := r.GetBatch(ctx, left)
			if err != nil {
				return nil, err
			}
			maps.Copy(found, read)
			left = unread
		}
	}
	entries := make([]*ledger.Entry, len(keys))
	for i, key := range keys {
		entries[i] = found[key]
	}
	return entries, nil
}

// GetBatch reads up to dynamoitem.MaxBatch different entries in one strongly consistent call. found has those that
// exist. unread are the keys that the table did not read in this call, because it throttles or the response is full.
func (r *BatchReader) GetBatch(
	ctx context.Context, keys []ledger.Key,
) (found map[ledger.Key]*ledger.Entry, unread []ledger.Key, err error) {
	wanted := make([]item, len(keys))
	for i, key := range keys {
		wanted[i] = dynamoitem.Key(key.String())
	}
	items, left, err := dynamoitem.GetBatch(ctx, r.client, r.table, wanted)
	if err != nil {
		return nil, nil, dynamoitem.DescribeError(readBatch, err)
	}
	found = map[ledger.Key]*ledger.Entry{}
	for _, stored := range items {
		e, err := Decode(stored)
		if err != nil {
			return nil, nil, dynamoitem.DescribeError(readBatch, logsafe.Errorf("%w: %s: %w", ledger.ErrUndecodable,
				dynamoitem.ReadText(stored, dynamoitem.KeyAttribute), err))
		}
		found[e.Key] = e
	}
	for _, named := range left {
		key, err := decodeKey(named)
		if err != nil {
			return nil, nil, dynamoitem.DescribeError(readBatch, err)
		}
		unread = append(unread, key)
	}
	return found, unread, nil
}
