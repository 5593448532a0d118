package deployment

import (
	"context"
	"errors"
	"maps"
	"strings"
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

// circuitPrefix begins the keys of the items with the circuits of an account.
const circuitPrefix = "circuit#"

// GetItem reads an item. The observer learns which circuits the instance has read.
func (c Client) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	since := time.Now()
	out, err := c.Client.GetItem(ctx, in, options...)
	if err == nil {
		c.learnCircuits(in.Key, out.Item, since, true)
	}
	return out, err
}

// UpdateItem changes an item, as GetItem reads one.
func (c Client) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	since := time.Now()
	out, err := c.Client.UpdateItem(ctx, in, options...)
	failed, isCondition := errors.AsType[*types.ConditionalCheckFailedException](err)
	switch {
	case isCondition:
		c.learnCircuits(in.Key, failed.Item, since, false)
	case err == nil && in.ExpressionAttributeNames["#form"] != "":
		c.learnCircuits(in.Key, dynamoitem.Item{
			in.ExpressionAttributeNames["#form"]: in.ExpressionAttributeValues[":next"],
		}, since, false)
	}
	return out, err
}

// learnCircuits passes the forms of an item of circuits on.
func (c Client) learnCircuits(key, item dynamoitem.Item, since time.Time, isRead bool) {
	account, isCircuit := strings.CutPrefix(dynamoitem.ReadText(key, "pk"), circuitPrefix)
	if isCircuit {
		c.tables.Observer.LearnedCircuits(c.instance, account, CircuitForms(item), since, isRead)
	}
}

// CircuitForms are the stored forms of an item of circuits, by operation.
func CircuitForms(item dynamoitem.Item) map[string]string {
	forms := map[string]string{}
	for _, operation := range []string{Charge, Pay, SMS} {
		forms[operation] = dynamoitem.ReadText(item, operation)
	}
	return forms
}

// DamageCircuits changes the stored forms of all circuits, as no function does. A form that becomes "" is lost.
func (t *Tables) DamageCircuits(account string, damage func(form string) string) {
	t.writer = nil
	out, err := t.Database.GetItem(&dynamodb.GetItemInput{
		TableName: aws.String(fixture.LimitTable), Key: dynamoitem.Key(circuitPrefix + account),
	}, model.Lag{})
	item := dynamoitem.Key(circuitPrefix + account)
	if err == nil {
		forms := CircuitForms(out.Item)
		for _, operation := range []string{Charge, Pay, SMS} {
			if next := damage(forms[operation]); next != "" {
				item[operation] = dynamoitem.Text(next)
			}
		}
		_, err = t.Database.PutItem(&dynamodb.PutItemInput{TableName: aws.String(fixture.LimitTable), Item: item})
	}
	if err != nil {
		t.Fail("damage the circuits of %s: %s", account, err)
	}
}
