package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
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

// profileReader is the ProfileReader of a table.
type profileReader struct {
	client batchGetter
	table  string
}

// maxProfileReads bounds the calls for a batch of profiles, while the table leaves some of them unread.
const maxProfileReads = 5

// Profiles implements ProfileReader with one BatchGetItem for MaxBatch profiles.
func (r profileReader) Profiles(ctx context.Context, ids []string) (
	profiles []*merchant.Profile, calls int, err error,
) {
	for batch := range slices.Chunk(ids, MaxBatch) {
		request := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
		for _, id := range batch {
			request.Keys = append(request.Keys, dynamoitem.Key(merchantdynamo.ProfileKey(id)))
		}
		for reads := 0; len(request.Keys) > 0; reads++ {
			if reads == maxProfileReads {
				return nil, calls, errors.New("the merchant table throttles reads: run the command again later")
			}
			calls++
			var found []*merchant.Profile
			if found, request.Keys, err = r.read(ctx, request); err != nil {
				return nil, calls, err
			}
			profiles = append(profiles, found...)
		}
	}
	return profiles, calls, nil
}

// read reads profiles by one call, and returns the keys that the table left unread.
func (r profileReader) read(ctx context.Context, request types.KeysAndAttributes) (
	profiles []*merchant.Profile, unread []dynamoitem.Item, err error,
) {
	out, err := r.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{r.table: request},
	})
	if err != nil {
		return nil, nil, dynamoitem.DescribeError("read from the merchant table", err)
	}
	for _, item := range out.Responses[r.table] {
		key := dynamoitem.ReadText(item, dynamoitem.KeyAttribute)
		profile, err := merchantdynamo.DecodeProfile(item, strings.TrimPrefix(key, merchantdynamo.ProfileKey("")))
		if err != nil {
			return nil, nil, err
		}
		profiles = append(profiles, profile)
	}
	return profiles, out.UnprocessedKeys[r.table].Keys, nil
}
