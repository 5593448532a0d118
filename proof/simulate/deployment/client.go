package deployment

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/shared/dynamoitem"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

// NewerAttribute is an attribute that only a newer version of the gateway knows.
const NewerAttribute = "zz"

// dueAttribute is when an entry is due.
const dueAttribute = "da"

// Client is the client of an instance. It returns the result of most queries of empty shards of the due index at once.
// Nine calls of ten are such queries, and no order of events matters for them.
type Client struct {
	*model.Client
	tables   *Tables
	instance *Instance
}

// Client returns the client of one instance.
func (t *Tables) Client(i *Instance) Client {
	attempts := model.NewClient(t.Database)
	attempts.Gate = func(ctx context.Context, call model.Call) model.Decision { return t.decide(ctx, i, call) }
	attempts.Sleep = func(ctx context.Context, wait time.Duration) { _ = i.Sleep(ctx, wait) }
	attempts.Late = func(call model.Call, apply func()) { t.applyLate(i, call, apply) }
	return Client{attempts, t, i}
}

// PutItem stores an item, with the attribute of a newer version. That one may have a timer that is due at once. Its
// sweep is without it, so that no entry is due again and again.
func (c Client) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if c.instance.newer && aws.ToString(in.TableName) == fixture.LedgerTable {
		newer := *in
		newer.Item = maps.Clone(in.Item)
		newer.Item[NewerAttribute] = dynamoitem.Text("a value of a newer version")
		if _, isDue := in.Item[dueAttribute]; isDue && c.tables.HasNewerTimer && !c.instance.Is(Sweep) {
			newer.Item[dueAttribute] = dynamoitem.Number(time.Now().UnixMilli())
		}
		in = &newer
	}
	out, err := c.Client.PutItem(ctx, in, options...)
	if _, isCondition := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !isCondition {
		c.tables.Observer.Interrupted(c.instance.Function) // the write may be stored, and the function does not know it
	}
	return out, err
}

// Query queries an index, or a table. A sweep skips the shards without an entry that is due soon, but while there are
// faults every eighth one queries them too. gatewayctl also needs the entries that are due later.
func (c Client) Query(
	ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	t := c.tables
	shard, isDueQuery := in.ExpressionAttributeValues[":shard"].(*types.AttributeValueMemberS)
	if isDueQuery && aws.ToString(in.IndexName) == ledgerdynamo.IndexDue && c.instance.Function == Sweep &&
		(!t.FaultsOn() || t.Counts.Sweeps%8 != 0) && t.Entries.IsShardEmpty(shard.Value) {
		return t.noItems, nil
	}
	return c.Client.Query(ctx, in, options...)
}
