package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/dynamoitem"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// gated returns a client whose attempts have the outcomes of a plan.
func gated(db *Database, p plan) *Client {
	client := NewClient(db)
	client.Gate = func(_ context.Context, call Call) Decision { return Decision{Outcome: p.outcome(call.Attempt)} }
	return client
}

// add adds one to the number v of two items in a transaction.
func add(client *Client) error {
	update := func(key string) types.TransactWriteItem {
		return types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String("ledger"), Key: dynamoitem.Key(key),
			UpdateExpression:          aws.String("SET v = if_not_exists(v, :zero) + :one"),
			ExpressionAttributeValues: Item{":zero": dynamoitem.Number(0), ":one": dynamoitem.Number(1)},
		}}
	}
	_, err := client.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{update("pay#1"), update("pay#2")},
	})
	return err
}

// Every outcome applies the write as often as it says. Three applied attempts of a transaction apply it once.
func TestOutcomes(t *testing.T) {
	applied := map[Outcome]int{
		Applied: 1, AppliedResponseLost: 3, AppliedThenCut: 3, AppliedInternalError: 3, AppliedLate: 3,
		NotAppliedTimeout: 0, NotAppliedCut: 0, Throttled: 0, InternalError: 0, Conflict: 0,
	}
	for outcome := range outcomes {
		db, _ := newLedger(t)
		client := gated(db, plan{outcome})
		_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("ledger"), Key: dynamoitem.Key("pay#3"),
			UpdateExpression:          aws.String("SET v = if_not_exists(v, :zero) + :one"),
			ExpressionAttributeValues: Item{":zero": dynamoitem.Number(0), ":one": dynamoitem.Number(1)},
		})
		transactErr := add(client)
		single, _ := dynamoitem.ReadNumber(db.tables["ledger"].items["pay#3"].itemOrNil(), "v")
		of, _ := dynamoitem.ReadNumber(db.tables["ledger"].items["pay#1"].itemOrNil(), "v")
		if (err == nil) != (outcome == Applied) || (transactErr == nil) != (outcome == Applied) {
			t.Errorf("outcome %d: errors %v and %v", outcome, err, transactErr)
		}
		if want := applied[outcome]; int(single) != want || int(of) != min(want, 1) {
			t.Errorf("outcome %d: applied %d times, want %d; the transaction %d times", outcome, single, want, of)
		}
	}
}

func TestLateWriteIsAppliedByKernel(t *testing.T) {
	db, _ := newLedger(t)
	client := gated(db, plan{AppliedLate, Applied})
	var late []func()
	client.Late = func(_ Call, apply func()) { late = append(late, apply) }
	if err := add(client); err != nil {
		t.Fatal(err)
	}
	put(t, db, Item{"pk": dynamoitem.Text("pay#1"), "v": dynamoitem.Number(7)})
	for _, apply := range late {
		apply()
	}
	if v, _ := dynamoitem.ReadNumber(db.tables["ledger"].items["pay#1"].itemOrNil(), "v"); v != 7 || len(late) != 1 {
		t.Fatalf("v is %d after %d late writes: the token did not make the late one a repeat", v, len(late))
	}
}

func TestTokenLifetime(t *testing.T) {
	db, c := newLedger(t)
	input := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String("token"),
		TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: aws.String("ledger"), Key: dynamoitem.Key("pay#1"),
			UpdateExpression:          aws.String("SET v = if_not_exists(v, :one) + :one"),
			ExpressionAttributeValues: Item{":one": dynamoitem.Number(1)},
		}}},
	}
	for _, want := range []int64{2, 2, 3} {
		if _, err := db.TransactWriteItems(input); err != nil {
			t.Fatal(err)
		}
		if v, _ := dynamoitem.ReadNumber(db.tables["ledger"].items["pay#1"].itemOrNil(), "v"); v != want {
			t.Fatalf("at %s, v is %d, want %d", c.time, v, want)
		}
		c.time = c.time.Add(tokenLifetime / 2)
	}
}

func TestConflictNamesOneWrite(t *testing.T) {
	db, _ := newLedger(t)
	client := NewClient(db)
	client.Gate = func(context.Context, Call) Decision { return Decision{Outcome: Conflict, ConflictAt: 1} }
	var cancelled *types.TransactionCanceledException
	if err := add(client); !errors.As(err, &cancelled) {
		t.Fatal(err)
	}
	reasons := cancelled.CancellationReasons
	codes := aws.ToString(reasons[0].Code) + " " + aws.ToString(reasons[1].Code)
	if codes != "None TransactionConflict" {
		t.Fatalf("reasons %s", codes)
	}
}

// dueKeys queries the index "due".
func dueKeys(t testing.TB, db *Database, lag Lag) string {
	t.Helper()
	out, err := db.Query(&dynamodb.QueryInput{
		TableName: aws.String("ledger"), IndexName: aws.String("due"),
		KeyConditionExpression: aws.String("ds = :shard AND da <= :before"),
		ExpressionAttributeValues: Item{
			":shard": dynamoitem.Text("3"), ":before": dynamoitem.Number(100),
		},
	}, lag)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, item := range out.Items {
		at, _ := dynamoitem.ReadNumber(item, "da")
		text += fmt.Sprintf("%s@%d ", dynamoitem.ReadText(item, "pk"), at)
	}
	return strings.TrimSpace(text)
}

func TestLag(t *testing.T) {
	db, c := newLedger(t)
	due := func(key string, at int64) {
		put(t, db, Item{
			"pk": dynamoitem.Text(key), "ds": dynamoitem.Text("3"), "da": dynamoitem.Number(at),
		})
		c.time = c.time.Add(time.Second)
	}
	due("a", 30)                     // 5 s ago
	due("b", 20)                     // 4 s ago
	due("a", 10)                     // 3 s ago
	put(t, db, dynamoitem.Key("b"))  // 2 s ago: leaves the index
	c.time = c.time.Add(time.Second) //
	due("c", 40)                     // 1 s ago
	cases := []struct {
		lag  Lag
		want string
	}{
		{Lag{}, "a@10 c@40"},
		{Lag{Writes: 1, Age: 1500 * time.Millisecond}, "a@10"},
		{Lag{Writes: 1, Age: time.Minute}, "b@20 a@30"},
		{Lag{Writes: 9, Age: time.Minute}, ""},
		{Lag{Writes: 9, Age: 3500 * time.Millisecond}, "b@20 a@30"},
	}
	for _, one := range cases {
		if got := dueKeys(t, db, one.lag); got != one.want {
			t.Errorf("%+v: %q, want %q", one.lag, got, one.want)
		}
	}
	get := &dynamodb.GetItemInput{TableName: aws.String("ledger"), Key: dynamoitem.Key("c")}
	for _, consistent := range []bool{false, true} {
		get.ConsistentRead = aws.Bool(consistent)
		out, err := db.GetItem(get, Lag{Writes: 1, Age: time.Minute})
		if err != nil || (len(out.Item) > 0) != consistent {
			t.Errorf("consistent %t: item %v, error %v", consistent, out.Item, err)
		}
	}
}

// A batch of a table that throttles leaves its last keys unread.
func TestBatchLeavesKeysUnread(t *testing.T) {
	db, _ := newLedger(t)
	put(t, db, dynamoitem.Key("a"))
	put(t, db, dynamoitem.Key("b"))
	keys := []Item{dynamoitem.Key("a"), dynamoitem.Key("b"), dynamoitem.Key("none")}
	for _, unread := range []int{0, 2, 3} {
		client := NewClient(db)
		client.Gate = func(_ context.Context, call Call) Decision {
			if len(call.Items) != len(keys) || call.Items[1].Key != "b" || !call.Consistent || call.Writes {
				t.Errorf("the call is %+v", call)
			}
			return Decision{Unread: unread}
		}
		found, left, err := dynamoitem.GetBatch(t.Context(), client, "ledger", keys)
		if err != nil || len(left) != unread || len(found) != min(2, len(keys)-unread) {
			t.Errorf("%d unread: found %d, left %d, error %v", unread, len(found), len(left), err)
		}
	}
}

func TestStreamRecords(t *testing.T) {
	db, _ := newLedger(t)
	entry := ledgertest.Full(t)
	item, err := ledgerdynamo.Encode(entry)
	if err != nil {
		t.Fatal(err)
	}
	put(t, db, item)
	put(t, db, item) // changes nothing, so it has no record
	if _, err := db.DeleteItem(&dynamodb.DeleteItemInput{
		TableName: aws.String("ledger"), Key: Item{"pk": item["pk"]},
	}); err != nil {
		t.Fatal(err)
	}
	records := db.Changes(0)
	if len(records) != 2 || records[0].Name() != "INSERT" || records[1].Name() != "REMOVE" ||
		records[0].Shard != records[1].Shard || len(db.Changes(records[0].Sequence)) != 1 {
		t.Fatalf("records %+v", records)
	}
	event := string(LambdaEvent(records...))
	image, _, found := strings.Cut(event[strings.Index(event, `"NewImage":`)+len(`"NewImage":`):], `,"SequenceNumber"`)
	decoded, err := ledgerdynamo.DecodeImage([]byte(image))
	if err != nil || !found {
		t.Fatalf("event %s: %v", event, err)
	}
	if diff := cmp.Diff(entry, decoded); diff != "" {
		t.Fatalf("entry of the record (-want +got):\n%s", diff)
	}
	db.Trim(records[0].Sequence)
	if left := db.Changes(0); len(left) != 1 || left[0] != records[1] {
		t.Fatalf("%d records after Trim, want 1", len(left))
	}
}

func TestExpire(t *testing.T) {
	db, c := newLedger(t)
	expireAt := func(key string, seconds int64) {
		put(t, db, Item{"pk": dynamoitem.Text(key), "expire_at": dynamoitem.Number(seconds)})
	}
	expireAt("past", c.time.Unix()-1)
	expireAt("future", c.time.Unix()+60)
	expireAt("mistake", 1)
	if keys := db.Expirable("ledger"); fmt.Sprint(keys) != "[past]" {
		t.Fatalf("expirable %v, want [past]", keys)
	}
	if db.Expire("ledger", "future") || db.Expire("ledger", "none") || !db.Expire("ledger", "past") {
		t.Fatal("Expire deleted the wrong items")
	}
	last := db.Changes(3)
	event := string(LambdaEvent(last...))
	if db.tables["ledger"].items["past"].itemOrNil() != nil || len(last) != 1 || !strings.Contains(event, "Service") {
		t.Fatalf("records %+v", last)
	}
}

// A clone and its origin do not see each other's writes. Equal contents have equal hashes, however they came about.
func TestCloneAndHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db := newModel(t).Database
		for _, s := range drawSteps(t) {
			s.run(t, NewClient(db))
		}
		before, contents := db.Hash(), contentsOf(db)
		clone := db.Clone()
		for _, s := range drawSteps(t) {
			s.run(t, NewClient(clone))
		}
		if db.Hash() != before || contentsOf(db) != contents {
			t.Fatal("a write to the clone changed the origin")
		}
		if (clone.Hash() == before) != (contentsOf(clone) == contents) {
			t.Fatal("the hash does not follow the contents")
		}
		rebuilt := newModel(t).Database
		for table := range keysByTable {
			for _, item := range clone.Items(table) {
				_, err := rebuilt.PutItem(&dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if rebuilt.Hash() != clone.Hash() || dueOf(rebuilt) != dueOf(clone) {
			t.Fatal("equal contents differ in the hash or the index")
		}
	})
}

func contentsOf(db *Database) string {
	text := ""
	for _, table := range []string{"ledger", "limits"} {
		for _, item := range db.Items(table) {
			text += image(item)
		}
	}
	return text
}

// dueOf returns the contents of the index "due".
func dueOf(db *Database) string {
	text := ""
	for _, shard := range []string{"0", "1"} {
		for _, s := range db.tables["ledger"].indexes[1].partitions[shard] {
			text += s.key + " "
		}
		text += "; "
	}
	return text
}

// A part of DynamoDB that the model does not have is a panic, so that no test passes by accident.
func TestNotModelled(t *testing.T) {
	condition := func(text string) func(*Database) {
		return func(db *Database) {
			_, _ = db.PutItem(&dynamodb.PutItemInput{
				TableName: aws.String("ledger"), Item: dynamoitem.Key("a"), ConditionExpression: aws.String(text),
			})
		}
	}
	item := func(value types.AttributeValue) func(*Database) {
		return func(db *Database) {
			_, _ = db.PutItem(&dynamodb.PutItemInput{
				TableName: aws.String("ledger"), Item: Item{"pk": dynamoitem.Text("a"), "x": value},
			})
		}
	}
	for name, use := range map[string]func(*Database){
		"function": condition("contains(a, b)"), "path": condition("a.b = c"), "list": condition("a IN (b)"),
		"map":      item(&types.AttributeValueMemberM{}),
		"fraction": item(&types.AttributeValueMemberN{Value: "1.5"}),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			db, _ := newLedger(t)
			use(db)
		})
	}
}
