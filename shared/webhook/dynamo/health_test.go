package dynamo_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/dynamoitem"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/webhook"
	"mobilegateway/shared/webhook/dynamo"
)

var (
	now  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	shop = webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/a"}
)

// healthTable is an empty ledger table with its store of health.
type healthTable struct {
	*dynamo.Store
	*dynamotest.Table
}

func newTable(t *testing.T) healthTable {
	t.Helper()
	table := dynamotest.NewTable(t)
	return healthTable{dynamo.New(table.Client, table.Name, func() time.Time { return now }), table}
}

func mustRead(t *testing.T, s healthTable, e webhook.Endpoint) webhook.Health {
	t.Helper()
	health, err := s.Health(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	return health
}

// assertHealth compares the stored health of an endpoint.
func assertHealth(t *testing.T, s healthTable, want webhook.Health) {
	t.Helper()
	if diff := cmp.Diff(want, mustRead(t, s, want.Endpoint)); diff != "" {
		t.Errorf("stored health (-want +got):\n%s", diff)
	}
}

func mustSave(t *testing.T, s healthTable, h webhook.Health) bool {
	t.Helper()
	saved, err := s.SaveHealth(context.Background(), h)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func TestHealth(t *testing.T) {
	s := newTable(t)
	shop := webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/notif?a=1&b=é"}
	assertHealth(t, s, webhook.Health{Endpoint: shop})
	full := webhook.Health{
		Endpoint: shop, Failures: 3, LastReason: "server", LastStatus: 503, ChangedAt: now, Slow: true,
	}
	if !mustSave(t, s, full) {
		t.Fatal("the first was not saved")
	}
	full.Version = 1
	for _, url := range []string{shop.URL, "https://shop.example.com:443/another"} {
		full.URL = url
		assertHealth(t, s, full)
	}
	healthy := webhook.Health{Endpoint: shop, Version: 1, ChangedAt: now}
	if !mustSave(t, s, healthy) {
		t.Fatal("the next was not saved")
	}
	healthy.Version = 2
	assertHealth(t, s, healthy)
	for _, version := range []int64{0, 1, 3} {
		if mustSave(t, s, webhook.Health{Endpoint: shop, Version: version, Failures: 9}) {
			t.Errorf("version 2 was replaced by a change of version %d", version)
		}
	}
	for _, other := range []webhook.Endpoint{
		{MerchantID: "demo0001", URL: "https://shop.example.com:8443/"},
		{MerchantID: "demo0002", URL: shop.URL},
		{MerchantID: "demo0001h", URL: shop.URL[1:]},
	} {
		assertHealth(t, s, webhook.Health{Endpoint: other})
	}
	want := now.Add(webhook.HealthRetention).Unix()
	if got, err := dynamoitem.ReadNumber(onlyItem(t, s), ledgerdynamo.TimeToLive); got != want || err != nil {
		t.Errorf("the item expires at %d (%v), want %d", got, err, want)
	}
}

// decision "notifications": a 410 disables one URL, without a time limit. The health of its server expires.
func TestDisabled(t *testing.T) {
	s := newTable(t)
	gone := webhook.Health{Endpoint: shop, LastReason: "gone", LastStatus: 410, ChangedAt: now, DisabledAt: now}
	ctx := context.Background()
	if saved, err := s.SaveDisabled(ctx, gone); !saved || err != nil {
		t.Fatal(saved, err)
	}
	gone.DisabledVersion = 1
	assertHealth(t, s, gone)
	if _, expires := onlyItem(t, s)[ledgerdynamo.TimeToLive]; expires {
		t.Error("the item of a disabled URL expires")
	}
	other := webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/b"}
	assertHealth(t, s, webhook.Health{Endpoint: other})
	if saved, err := s.SaveDisabled(ctx, webhook.Health{Endpoint: shop}); saved || err != nil {
		t.Errorf("version 1 was replaced by a change of version 0: %v", err)
	}
	if saved, err := s.SaveDisabled(ctx, gone.AfterEnable(now)); !saved || err != nil {
		t.Fatal(saved, err)
	}
	assertHealth(t, s, webhook.Health{Endpoint: shop, DisabledVersion: 2})
	if _, expires := onlyItem(t, s)[ledgerdynamo.TimeToLive]; !expires {
		t.Error("the item of an enabled URL does not expire")
	}
}

// Expired failures are ignored before the table deletes their item, and the item can be replaced.
func TestFailuresExpire(t *testing.T) {
	s := newTable(t)
	expired := now.Add(-webhook.HealthRetention)
	mustSave(t, s, webhook.Health{Endpoint: shop, Failures: 5, Slow: true, ChangedAt: expired})
	assertHealth(t, s, webhook.Health{Endpoint: shop, Version: 1})
	if !mustSave(t, s, webhook.Health{Endpoint: shop, Version: 1, Failures: 1, ChangedAt: now}) {
		t.Error("the expired item was not replaced")
	}
	assertHealth(t, s, webhook.Health{Endpoint: shop, Version: 2, Failures: 1, ChangedAt: now})
}

// An earlier version stored failures in the item of a disabled URL. They are not read; that the URL is disabled is.
func TestItemsOfEarlierVersion(t *testing.T) {
	s := newTable(t)
	sum := sha256.Sum256([]byte(shop.MerchantID + "\x00" + shop.URL))
	item := dynamoitem.Key("endpoint#" + hex.EncodeToString(sum[:]))
	for name, value := range map[string]int64{
		"version": 7, "failures": 9, "slow": 1, "last_status": 500, "changed_at": now.UnixMilli(),
	} {
		item[name] = dynamoitem.Number(value)
	}
	for _, disabled := range []bool{false, true} {
		if disabled {
			item["disabled_at"] = dynamoitem.Number(now.UnixMilli())
		}
		put := &dynamodb.PutItemInput{TableName: &s.Name, Item: item}
		if _, err := s.Client.PutItem(context.Background(), put); err != nil {
			t.Fatal(err)
		}
		got := mustRead(t, s, shop)
		if got.Enabled() == disabled || got.Failures != 0 || got.Slow || got.DisabledVersion != 7 {
			t.Errorf("disabled %v: read %+v, want no failures and version 7", disabled, got)
		}
	}
}

// onlyItem returns the only item of the table. It checks that no index has it and that it does not wake the relay.
func onlyItem(t *testing.T, s healthTable) dynamoitem.Item {
	t.Helper()
	out, err := s.Client.Scan(context.Background(), &dynamodb.ScanInput{TableName: &s.Name})
	if err != nil || len(out.Items) != 1 {
		t.Fatalf("%d items, %v", len(out.Items), err)
	}
	for _, attribute := range []string{ledgerdynamo.WakeAttribute, "ds", "da", "md"} {
		if _, found := out.Items[0][attribute]; found {
			t.Errorf("the item has %s", attribute)
		}
	}
	return out.Items[0]
}

func TestConcurrentSaveHasOneWinner(t *testing.T) {
	s := newTable(t)
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			if mustSave(t, s, webhook.Health{Endpoint: shop, Failures: i + 1, ChangedAt: now}) {
				won.Add(1)
			}
		})
	}
	group.Wait()
	if version := mustRead(t, s, shop).Version; won.Load() != 1 || version != 1 {
		t.Errorf("%d of 10 concurrent writes won, version %d, want 1 and 1", won.Load(), version)
	}
}

func TestErrors(t *testing.T) {
	s := newTable(t)
	ctx := context.Background()
	shop := webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/canary"}
	s.Transport.Losses = math.MaxInt
	if _, err := s.Health(ctx, shop); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error %v", err)
	}
	if saved, err := s.SaveHealth(ctx, webhook.Health{Endpoint: shop, ChangedAt: now}); saved || err == nil {
		t.Errorf("saved %v, %v", saved, err)
	}
	s.Transport.Losses = 0
	if got := mustRead(t, s, shop); got.Version != 1 {
		t.Errorf("read %+v, want the write whose response was lost", got)
	}
	_, err := s.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.Name, UpdateExpression: aws.String("SET failures = :x"),
		Key:                       dynamoitem.Item{"pk": onlyItem(t, s)["pk"]},
		ExpressionAttributeValues: dynamoitem.Item{":x": &types.AttributeValueMemberN{Value: "1.5"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Health(ctx, shop); err == nil {
		t.Error("a malformed item is not an error")
	}
}
