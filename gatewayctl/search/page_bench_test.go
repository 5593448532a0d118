package search_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/search"
	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
)

// BenchmarkPage measures a page among 100,000 transactions of today, of three merchants with one to five partitions, on
// the local database: go test ./gatewayctl/search -run x -bench Page -benchtime 20x.
func BenchmarkPage(b *testing.B) {
	const transactions = 100_000
	endpoint := dynamotest.StartEndpoint(b)
	client := dynamotest.NewClient(endpoint, http.DefaultTransport)
	if _, err := client.CreateTable(b.Context(), ledgerdynamo.Schema("ledger")); err != nil {
		b.Fatal(err)
	}
	shops := newWorld(nil, 1, 2, 5).shops
	fill(b, client, shops, transactions)
	variables := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_ENDPOINT_URL": endpoint,
	}
	stores, err := deployment.Connect(deployment.System{
		Getenv: func(name string) string { return variables[name] }, Now: func() time.Time { return now },
	}, deployment.Names{LedgerTable: "ledger", MerchantTable: "merchants"})
	if err != nil {
		b.Fatal(err)
	}
	store := struct {
		ledger.DayIndex
		deployment.BatchReader
	}{stores.Ledger, stores.Batches}
	for name, filter := range map[string]search.Filter{
		"every":  {},
		"some":   {Amount: "1005"},
		"scarce": {Amount: "1005", Payer: "0034"},
	} {
		b.Run(name, func(b *testing.B) {
			var times []time.Duration
			var page search.Page
			for b.Loop() {
				began := time.Now()
				page, err = search.Find(b.Context(), store, func() ([]*merchant.Profile, int, error) {
					return slices.Clone(shops), 1, nil
				}, search.Query{Filter: filter, Now: now})
				if err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Milliseconds()), "median-ms")
			b.ReportMetric(float64(page.Calls), "calls")
			b.ReportMetric(float64(len(page.Entries)), "rows")
		})
	}
}

// fill stores payments of half a day, in batches.
func fill(b *testing.B, client *dynamodb.Client, shops []*merchant.Profile, count int) {
	const batch, writers = 25, 4
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for first := writer * batch; first < count; first += writers * batch {
				var writes []types.WriteRequest
				for i := first; i < min(first+batch, count); i++ {
					item, err := ledgerdynamo.Encode(numbered(shops[i%len(shops)], i, count))
					if err != nil {
						b.Error(err)
						return
					}
					writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
				}
				_, err := client.BatchWriteItem(b.Context(), &dynamodb.BatchWriteItemInput{
					RequestItems: map[string][]types.WriteRequest{"ledger": writes},
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// numbered is a payment as a request stores it, of an amount and a number by its own number.
func numbered(p *merchant.Profile, i, count int) *ledger.Entry {
	const half = 12 * time.Hour
	at := now.Add(-half * time.Duration(i) / time.Duration(count)).Truncate(time.Millisecond)
	id := p.Name + "_" + strconv.Itoa(i)
	e := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: id}, Merchant: ledger.Merchant{ID: p.ID, Name: p.Name}, Version: 3,
		CreatedAt: at, UpdatedAt: at,
		Call:     ledger.Call{State: ledger.Done, SentAt: at, ReservedAt: at},
		Progress: ledger.Progress{Status: ledger.Successful, FinalAt: at},
		Route:    ledger.Route{Operator: "sandbox", Account: "a1", Country: "CI", UpstreamKey: id},
		Request:  ledger.Request{Channel: "ussd", MSISDN: fmt.Sprintf("07070%05d", i), State: "cart-7"},
		Amount:   ledger.Amount{Minor: int64(1000 + i%100), Currency: "XOF"},
		Response: ledger.Response{Status: http.StatusCreated, Body: make([]byte, 500)},
		Outbox:   ledger.Outbox{URL: "https://shop.example/n"},
	}
	e.Merchant.DayShard = p.DayShard(e.Key)
	return e
}
