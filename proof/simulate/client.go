package simulate

import (
	"context"
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

// newerAttribute is an attribute that only a newer version of the gateway knows.
const newerAttribute = "zz"

// client is the client of an instance. It returns the result of most queries of empty shards of the due index at once.
// Nine calls of ten are such queries, and no order of events matters for them.
type client struct {
	*model.Client
	world    *World
	instance *instance
}

// PutItem stores an item, with the attribute of a newer version.
func (c client) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if c.instance.newer && aws.ToString(in.TableName) == ledgerTable {
		newer := *in
		newer.Item = maps.Clone(in.Item)
		newer.Item[newerAttribute] = dynamoitem.Text("a value of a newer version")
		in = &newer
	}
	out, err := c.Client.PutItem(ctx, in, options...)
	if _, isCondition := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !isCondition {
		// The write may be stored, and the function does not know it: that is like a crash before it refunds.
		c.world.amountsMayStay = c.world.amountsMayStay || countsAmounts(c.instance.function)
	}
	return out, err
}

// Query queries an index, or a table.
func (c client) Query(
	ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	shard, isDueQuery := in.ExpressionAttributeValues[":shard"].(*types.AttributeValueMemberS)
	if isDueQuery && aws.ToString(in.IndexName) == ledgerdynamo.IndexDue && c.world.skipsEmptyShards() &&
		c.world.isShardEmpty(shard.Value) {
		return c.world.noItems, nil
	}
	return c.Client.Query(ctx, in, options...)
}

// skipsEmptyShards reports whether a sweep may skip the queries of empty shards. While there are faults, every eighth
// sweep makes them all.
func (w *World) skipsEmptyShards() bool { return !w.FaultsOn() || w.Counts.Sweeps%8 != 0 }
