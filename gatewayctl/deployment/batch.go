package deployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// batchReader is the BatchReader of a table. No function needs it. It is here so that no function links its call.
type batchReader struct {
	client batchGetter
	table  string
}

// batchGetter is the part of the SDK's client that reads many items.
type batchGetter interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.BatchGetItemOutput, error)
}

// GetBatch implements BatchReader with one BatchGetItem.
func (r batchReader) GetBatch(
	ctx context.Context, keys []ledger.Key,
) (found map[ledger.Key]*ledger.Entry, unread []ledger.Key, err error) {
	const action = "ledger: reading transactions"
	found = map[ledger.Key]*ledger.Entry{}
	if len(keys) == 0 {
		return found, nil, nil
	}
	request := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, key := range keys {
		request.Keys = append(request.Keys, dynamoitem.Key(key.String()))
	}
	out, err := r.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{r.table: request},
	})
	if err != nil {
		return nil, nil, dynamoitem.DescribeError(action, err)
	}
	for _, item := range out.Responses[r.table] {
		e, err := ledgerdynamo.Decode(item)
		if err != nil {
			return nil, nil, dynamoitem.DescribeError(action, fmt.Errorf("%w: %s: %w", ledger.ErrUndecodable,
				dynamoitem.ReadText(item, dynamoitem.KeyAttribute), err))
		}
		found[e.Key] = e
	}
	for _, item := range out.UnprocessedKeys[r.table].Keys {
		kind, id, _ := strings.Cut(dynamoitem.ReadText(item, dynamoitem.KeyAttribute), "#")
		unread = append(unread, ledger.Key{Kind: ledger.Kind(kind), ID: id})
	}
	return found, unread, nil
}
