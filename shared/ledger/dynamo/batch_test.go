package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

// throttlingClient leaves all keys but one out of a batch, for some requests.
type throttlingClient struct {
	dynamoitem.BatchGetter
	throttled, requests int
}

func (c *throttlingClient) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	c.requests++
	left := map[string]types.KeysAndAttributes{}
	if c.throttled > 0 {
		c.throttled--
		for table, wanted := range in.RequestItems {
			first, others := wanted, wanted
			first.Keys, others.Keys = wanted.Keys[:1], wanted.Keys[1:]
			in = &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: first}}
			left[table] = others
		}
	}
	out, err := c.BatchGetter.BatchGetItem(ctx, in, options...)
	if err == nil {
		out.UnprocessedKeys = left
	}
	return out, err
}

// putEntries stores payments, and returns their keys.
func putEntries(t *testing.T, table *dynamotest.Table, count int) (keys []ledger.Key) {
	t.Helper()
	store := dynamo.New(table.Client, table.Name)
	for i := range count {
		e := &ledger.Entry{
			Key:     ledger.Key{Kind: ledger.Payment, ID: fmt.Sprintf("DemoShop_%d", i)},
			Version: 1, Writer: "w", Call: ledger.Call{State: ledger.Done},
		}
		if existing, err := store.Insert(t.Context(), e, ledger.Reserve); err != nil || existing != nil {
			t.Fatal(existing, err)
		}
		keys = append(keys, e.Key)
	}
	return keys
}

func TestGetAll(t *testing.T) {
	table := dynamotest.NewTable(t)
	keys := putEntries(t, table, 130)
	missing := ledger.Key{Kind: ledger.SMS, ID: "missing"}
	wanted := append([]ledger.Key{keys[129], missing, keys[3], keys[129]}, keys...)
	table.Transport.TakeCounts()
	found, err := dynamo.NewBatchReader(table.Client, table.Name).GetAll(t.Context(), wanted)
	if err != nil || len(found) != len(wanted) {
		t.Fatalf("%d entries, %v; want %d", len(found), err, len(wanted))
	}
	if counts := table.Transport.TakeCounts(); counts["BatchGetItem"] != 2 || len(counts) != 1 {
		t.Errorf("requests %v, want two batches", counts)
	}
	for i, key := range wanted {
		switch {
		case key == missing && found[i] != nil:
			t.Errorf("%s is %+v, want nil", key, found[i])
		case key != missing && (found[i] == nil || found[i].Key != key):
			t.Errorf("at %d: %+v, want %s", i, found[i], key)
		}
	}
	none, err := dynamo.NewBatchReader(table.Client, table.Name).GetAll(t.Context(), nil)
	if len(none) > 0 || err != nil {
		t.Errorf("no keys: %v, %v", none, err)
	}
}

// Keys that DynamoDB leaves out are requested again, at most three times.
func TestGetAllWhileThrottled(t *testing.T) {
	table := dynamotest.NewTable(t)
	keys := putEntries(t, table, 6)
	for throttled, fails := range map[int]bool{1: false, 3: false, 4: true} {
		client := &throttlingClient{BatchGetter: table.Client, throttled: throttled}
		found, err := dynamo.NewBatchReader(client, table.Name).GetAll(t.Context(), keys)
		if (err != nil) != fails {
			t.Errorf("throttled %d times: %v, want an error: %v", throttled, err, fails)
		}
		if want := min(throttled+1, 4); client.requests != want {
			t.Errorf("throttled %d times: %d requests, want %d", throttled, client.requests, want)
		}
		for i := range found {
			if found[i] == nil || found[i].Key != keys[i] {
				t.Errorf("throttled %d times: %v at %d", throttled, found[i], i)
			}
		}
	}
}

func TestGetAllFails(t *testing.T) {
	table := dynamotest.NewTable(t)
	key := ledger.Key{Kind: ledger.Payment, ID: "broken"}
	broken := dynamoitem.Key(key.String())
	broken["v"] = dynamoitem.Text("not a number")
	_, err := table.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table.Name, Item: broken})
	if err != nil {
		t.Fatal(err)
	}
	_, err = dynamo.NewBatchReader(table.Client, table.Name).GetAll(t.Context(), []ledger.Key{key})
	if !errors.Is(err, ledger.ErrUndecodable) {
		t.Errorf("%v, want ErrUndecodable", err)
	}
	if _, err := dynamo.NewBatchReader(table.Client, "missing").GetAll(t.Context(), []ledger.Key{key}); err == nil {
		t.Error("a missing table gave no error")
	}
}
