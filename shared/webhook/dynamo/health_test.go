package dynamo_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/internal/dynamotest"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/webhook"
	"mobilegateway/shared/webhook/dynamo"
)

const table = "ledger"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newStore starts a server with an empty ledger table; each request passes through transport.
func newStore(t *testing.T, transport http.RoundTripper) (*dynamo.Store, *dynamodb.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(dynamotest.StartEndpoint(t)),
		HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
		RetryMaxAttempts: 1,
	})
	if _, err := client.CreateTable(ctx, ledgerdynamo.Schema(table)); err != nil {
		t.Fatal(err)
	}
	return dynamo.New(client, table, func() time.Time { return now }), client
}

func mustRead(t *testing.T, s *dynamo.Store, e webhook.Endpoint) webhook.Health {
	t.Helper()
	health, err := s.Health(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	return health
}

// assertHealth compares the stored health of an endpoint.
func assertHealth(t *testing.T, s *dynamo.Store, want webhook.Health) {
	t.Helper()
	if diff := cmp.Diff(want, mustRead(t, s, want.Endpoint)); diff != "" {
		t.Errorf("stored health (-want +got):\n%s", diff)
	}
}

func mustSave(t *testing.T, s *dynamo.Store, h webhook.Health) bool {
	t.Helper()
	saved, err := s.SaveHealth(context.Background(), h)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func TestHealth(t *testing.T) {
	s, client := newStore(t, http.DefaultTransport)
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
	want := strconv.FormatInt(now.Add(webhook.HealthRetention).Unix(), 10)
	if got := onlyItem(t, client)[ledgerdynamo.TimeToLive].(*types.AttributeValueMemberN).Value; got != want {
		t.Errorf("the item expires at %s, want %s", got, want)
	}
}

// decision "notifications": a 410 disables one URL, without a time limit. The health of its server expires.
func TestDisabled(t *testing.T) {
	s, client := newStore(t, http.DefaultTransport)
	shop := webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/a"}
	gone := webhook.Health{Endpoint: shop, LastReason: "gone", LastStatus: 410, ChangedAt: now, DisabledAt: now}
	ctx := context.Background()
	if saved, err := s.SaveDisabled(ctx, gone); !saved || err != nil {
		t.Fatal(saved, err)
	}
	gone.DisabledVersion = 1
	assertHealth(t, s, gone)
	if _, expires := onlyItem(t, client)[ledgerdynamo.TimeToLive]; expires {
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
	if _, expires := onlyItem(t, client)[ledgerdynamo.TimeToLive]; !expires {
		t.Error("the item of an enabled URL does not expire")
	}
}

// Expired failures are ignored before the table deletes their item, and the item can be replaced.
func TestFailuresExpire(t *testing.T) {
	s, _ := newStore(t, http.DefaultTransport)
	shop := webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/a"}
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
	s, client := newStore(t, http.DefaultTransport)
	shop := webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/a"}
	sum := sha256.Sum256([]byte(shop.MerchantID + "\x00" + shop.URL))
	whole := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	item := map[string]types.AttributeValue{
		"pk":       &types.AttributeValueMemberS{Value: "endpoint#" + hex.EncodeToString(sum[:])},
		"version":  whole(7),
		"failures": whole(9), "slow": whole(1), "last_status": whole(500), "changed_at": whole(now.UnixMilli()),
	}
	for _, disabled := range []bool{false, true} {
		if disabled {
			item["disabled_at"] = whole(now.UnixMilli())
		}
		put := &dynamodb.PutItemInput{TableName: aws.String(table), Item: item}
		if _, err := client.PutItem(context.Background(), put); err != nil {
			t.Fatal(err)
		}
		got := mustRead(t, s, shop)
		if got.Enabled() == disabled || got.Failures != 0 || got.Slow || got.DisabledVersion != 7 {
			t.Errorf("disabled %v: read %+v, want no failures and version 7", disabled, got)
		}
	}
}

// onlyItem returns the only item of the table. It checks that no index has it and that it does not wake the relay.
func onlyItem(t *testing.T, client *dynamodb.Client) map[string]types.AttributeValue {
	t.Helper()
	out, err := client.Scan(context.Background(), &dynamodb.ScanInput{TableName: aws.String(table)})
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
	s, _ := newStore(t, http.DefaultTransport)
	shop := webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/"}
	var mutex sync.Mutex
	won := 0
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			if mustSave(t, s, webhook.Health{Endpoint: shop, Failures: i + 1, ChangedAt: now}) {
				mutex.Lock()
				defer mutex.Unlock()
				won++
			}
		})
	}
	group.Wait()
	if won != 1 || mustRead(t, s, shop).Version != 1 {
		t.Errorf("%d of 10 concurrent writes won, version %d, want 1 and 1", won, mustRead(t, s, shop).Version)
	}
}

// lostResponseTransport sends requests and, while on, loses the responses.
type lostResponseTransport struct{ on bool }

func (l *lostResponseTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if l.on && err == nil {
		_ = response.Body.Close()
		return nil, errors.New("connection reset by peer")
	}
	return response, err
}

func TestErrors(t *testing.T) {
	line := &lostResponseTransport{}
	s, client := newStore(t, line)
	ctx := context.Background()
	shop := webhook.Endpoint{MerchantID: "demo0001", URL: "https://shop.example.com/canary"}
	line.on = true
	if _, err := s.Health(ctx, shop); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error %v", err)
	}
	if saved, err := s.SaveHealth(ctx, webhook.Health{Endpoint: shop, ChangedAt: now}); saved || err == nil {
		t.Errorf("saved %v, %v", saved, err)
	}
	line.on = false
	if got := mustRead(t, s, shop); got.Version != 1 {
		t.Errorf("read %+v, want the write whose response was lost", got)
	}
	_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(table), UpdateExpression: aws.String("SET failures = :x"),
		Key:                       map[string]types.AttributeValue{"pk": onlyItem(t, client)["pk"]},
		ExpressionAttributeValues: map[string]types.AttributeValue{":x": &types.AttributeValueMemberN{Value: "1.5"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Health(ctx, shop); err == nil {
		t.Error("a malformed item is not an error")
	}
}
