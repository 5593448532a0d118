package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
)

const (
	// maxBatch is the number of items that BatchGetItem takes.
	maxBatch = 100
	// maxBatchRounds bounds the requests of one batch: DynamoDB leaves keys out while it throttles.
	maxBatchRounds = 4
)

// BatchClient is the part of the SDK's client that a BatchReader uses. It is not a part of Client, so that only the
// function that reads batches contains the call.
type BatchClient interface {
	BatchGetItem(
		ctx context.Context, in *dynamodb.BatchGetItemInput, options ...options,
	) (*dynamodb.BatchGetItemOutput, error)
}

// BatchReader reads many entries of the ledger's table at once. It has no state; any number of goroutines may use it.
type BatchReader struct {
	client BatchClient
	table  string
}

var _ ledger.BatchReader = (*BatchReader)(nil)

// NewBatchReader makes the reader of a table.
func NewBatchReader(client BatchClient, table string) *BatchReader {
	return &BatchReader{client: client, table: table}
}

// GetAll implements ledger.BatchReader: one BatchGetItem for each 100 keys, and one more for keys that DynamoDB leaves
// out.
func (r *BatchReader) GetAll(ctx context.Context, keys []ledger.Key) ([]*ledger.Entry, error) {
	const action = "ledger: reading several entries"
	found := map[string]*ledger.Entry{}
	for batch := range slices.Chunk(keys, maxBatch) {
		if err := r.read(ctx, batch, found); err != nil {
			return nil, dynamoitem.DescribeError(action, err)
		}
	}
	entries := make([]*ledger.Entry, len(keys))
	for i, key := range keys {
		entries[i] = found[key.String()]
	}
	return entries, nil
}

// errThrottled is the error of a batch from which DynamoDB has left keys out each time.
var errThrottled = errors.New("the table throttles batches")

// read adds the entries of at most maxBatch keys, by the text of their keys. BatchGetItem refuses a key that is named
// twice, so it names each once.
func (r *BatchReader) read(ctx context.Context, batch []ledger.Key, found map[string]*ledger.Entry) error {
	wanted := map[string]dynamoitem.Item{}
	for _, key := range batch {
		wanted[key.String()] = dynamoitem.Key(key.String())
	}
	left := map[string]types.KeysAndAttributes{
		r.table: {ConsistentRead: aws.Bool(true), Keys: slices.Collect(maps.Values(wanted))},
	}
	for range maxBatchRounds {
		out, err := r.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: left})
		if err != nil {
			return err
		}
		for _, stored := range out.Responses[r.table] {
			e, err := Decode(stored)
			if err != nil {
				return fmt.Errorf("%w: %w", ledger.ErrUndecodable, err)
			}
			found[e.Key.String()] = e
		}
		if left = out.UnprocessedKeys; len(left[r.table].Keys) == 0 {
			return nil
		}
	}
	return errThrottled
}
