package dynamo_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/dynamo"
)

// newRegistry returns a registry over an empty table, and the table.
func newRegistry(t *testing.T) (*dynamo.Registry, *dynamotest.Table) {
	t.Helper()
	table := dynamotest.NewTable(t)
	return dynamo.NewRegistry(table.Client, table.Name), table
}

func TestLostResponseIsNotARefusal(t *testing.T) {
	ctx := t.Context()
	r, table := newRegistry(t)
	p := merchanttest.NewProfile(t, "DemoShop", 1)

	table.Transport.Losses = 1
	if err := r.Create(ctx, p); err != nil {
		t.Fatalf("Create: %v", err)
	}
	table.Transport.Losses = 1
	p.Countries = []string{"TN"}
	if err := r.Update(ctx, p); err != nil || p.Version != 2 {
		t.Fatalf("Update: %v, version %d", err, p.Version)
	}
	table.Transport.Losses = 1
	read, err := r.Profile(ctx, p.ID)
	if err != nil || read.Version != 2 || read.Countries[0] != "TN" {
		t.Fatalf("Profile = %+v, %v", read, err)
	}
}

// recordingGetter keeps the inputs of the reads.
type recordingGetter struct {
	dynamoitem.Getter
	inputs []*dynamodb.GetItemInput
}

func (g *recordingGetter) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	g.inputs = append(g.inputs, in)
	return g.Getter.GetItem(ctx, in, options...)
}

func TestProfileCausesOneConsistentRead(t *testing.T) {
	ctx := t.Context()
	r, table := newRegistry(t)
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	if err := r.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	if _, err := dynamo.New(table.Client, "missing-table").Profile(ctx, p.ID); err == nil {
		t.Error("a missing table gave no error")
	}
	table.Transport.TakeCounts()
	getter := &recordingGetter{Getter: table.Client}
	if read, err := dynamo.New(getter, table.Name).Profile(ctx, p.ID); err != nil || read.Name != "DemoShop" {
		t.Fatalf("Profile = %v, %v", read, err)
	}
	if diff := cmp.Diff(map[string]int{"GetItem": 1}, table.Transport.TakeCounts()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if !aws.ToBool(getter.inputs[0].ConsistentRead) {
		t.Error("the read is not strongly consistent")
	}
}

func TestReadableAndUnknownAttributesAreKept(t *testing.T) {
	ctx := t.Context()
	r, table := newRegistry(t)
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	if err := r.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	key := dynamoitem.Key("merchant#" + p.ID)
	_, err := table.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &table.Name, Key: key, UpdateExpression: aws.String("SET later = :l"),
		ExpressionAttributeValues: dynamoitem.Item{":l": dynamoitem.Text("kept")},
	})
	if err != nil {
		t.Fatal(err)
	}
	merchant.Suspend(p, p.CreatedAt)
	if err := r.Update(ctx, p); err != nil {
		t.Fatal(err)
	}
	item, err := table.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table.Name, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for attribute, want := range map[string]string{"name": "DemoShop", "status": "suspended", "later": "kept"} {
		if got := dynamoitem.ReadText(item.Item, attribute); got != want {
			t.Errorf("attribute %s is %q, want %q", attribute, got, want)
		}
	}
	if version, err := dynamoitem.ReadNumber(item.Item, "version"); version != 2 || err != nil {
		t.Errorf("attribute version is %d (%v), want 2", version, err)
	}
}
