package dynamodb

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/dynamoitem"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// engine is what the model's client and the SDK's client of a real engine have.
type engine interface {
	writer
	GetItem(context.Context, *dynamodb.GetItemInput, ...options) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...options) (*dynamodb.BatchGetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...options) (*dynamodb.UpdateItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...options) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...options) (*dynamodb.ScanOutput, error)
}

// The tables of the sequences, and all keys of each.
var keysByTable = map[string][]string{
	"ledger": {"charge#1", "pay#1", "pay#2", "sms#1"},
	"limits": {"day#1", "mark#1", "mark#2", "rate#1"},
}

// schemas returns the tables' schemas. They have no stream, because it slows Dynoxide down.
func schemas() []*dynamodb.CreateTableInput {
	limits := &dynamodb.CreateTableInput{
		TableName: aws.String("limits"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}
	ledger := ledgerdynamo.Schema("ledger")
	ledger.StreamSpecification = nil
	return []*dynamodb.CreateTableInput{ledger, limits}
}

// newEndpointClient returns a client of Dynoxide, or of the reference that the environment names, with empty tables.
func newEndpointClient(t *testing.T) *dynamodb.Client {
	t.Helper()
	client := dynamotest.NewClient(dynamotest.StartEndpoint(t), http.DefaultTransport)
	for _, schema := range schemas() {
		if _, err := client.CreateTable(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
	}
	return client
}

// newModel returns a client of an empty model.
func newModel(t rapid.TB) *Client {
	t.Helper()
	db := New(time.Now)
	for _, schema := range schemas() {
		if err := db.CreateTable(schema, ledgerdynamo.TimeToLive); err != nil {
			t.Fatal(err)
		}
	}
	return NewClient(db)
}

// empty deletes all items of the sequences.
func empty(t rapid.TB, client *dynamodb.Client) {
	t.Helper()
	requests := map[string][]types.WriteRequest{}
	for table, keys := range keysByTable {
		for _, key := range keys {
			request := types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: dynamoitem.Key(key)}}
			requests[table] = append(requests[table], request)
		}
	}
	_, err := client.BatchWriteItem(context.Background(), &dynamodb.BatchWriteItemInput{RequestItems: requests})
	if err != nil {
		t.Fatal(err)
	}
}

// TestModelMatchesEngine runs random sequences of operations on the model and on a real engine. All results, errors and
// final contents are equal. A failing sequence is shrunk and printed. -rapid.checks sets how many sequences each of the
// parallel workers runs: 100, unless it is set.
func TestModelMatchesEngine(t *testing.T) {
	const workers = 3
	for range workers {
		t.Run("worker", func(t *testing.T) {
			t.Parallel()
			compareWithEngine(t)
		})
	}
}

func compareWithEngine(t *testing.T) {
	client := newEndpointClient(t)
	rapid.Check(t, func(t *rapid.T) {
		empty(t, client)
		model := newModel(t)
		steps := rapid.Custom(drawSteps).Draw(t, "steps")
		for _, table := range []string{"ledger", "limits"} {
			steps = append(steps, scanStep(table, nil, 0))
		}
		for i, s := range steps {
			want, got := s.run(t, client), s.run(t, model)
			if want != got && !isKnownDifference(s, want, got) {
				t.Fatalf("step %d: %s\nengine: %s\nmodel:  %s", i, s.text, want, got)
			}
		}
	})
}

// describe returns what a caller finds out about an error.
func describe(err error) string {
	if err == nil {
		return "none"
	}
	var service smithy.APIError
	if !errors.As(err, &service) {
		return err.Error()
	}
	text := service.ErrorCode()
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		text = strings.TrimSuffix(text+" "+image(failed.Item), " ")
	}
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		for _, reason := range cancelled.CancellationReasons {
			text += " " + strings.TrimSuffix(aws.ToString(reason.Code)+" "+image(reason.Item), " ")
		}
	}
	return text
}

// image returns the item's JSON, "" for none.
func image(item Item) string {
	if len(item) == 0 {
		return ""
	}
	return string(ItemJSON(item))
}

// images returns the sorted JSON of items.
func images(items []Item) string {
	var texts []string
	for _, item := range items {
		texts = append(texts, image(item))
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n  ")
}

// sortValues returns the values of an index's sort key, in the order of a query.
func sortValues(items []Item, name string) string {
	var values []byte
	for _, item := range items {
		values = append(values, ItemJSON(Item{name: item[name]})...)
	}
	return string(values)
}
