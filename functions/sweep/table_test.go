package sweep_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

// countingTransport counts the requests of each operation.
type countingTransport struct {
	mutex sync.Mutex
	count map[string]int
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.mutex.Lock()
	c.count[operation]++
	c.mutex.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// take returns the counts since the last call.
func (c *countingTransport) take() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	counts := fmt.Sprint(c.count)
	c.count = map[string]int{}
	return counts
}

// newFixtureOnTable returns a sweep over a table of the embedded server, and the transport that counts its requests.
func newFixtureOnTable(t testing.TB) (*sweepFixture, *countingTransport, *dynamodb.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	counted := &countingTransport{count: map[string]int{}}
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(dynamotest.StartEndpoint(t)),
		HTTPClient: &http.Client{Transport: counted},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	if _, err := client.CreateTable(ctx, dynamo.Schema("ledger")); err != nil {
		t.Fatal(err)
	}
	s := newFixture(t)
	store := dynamo.New(client, "ledger")
	s.Book = &ledger.Book{Store: store, Reader: store, Now: s.Clock.Now, Rand: &operationtest.UniqueReader{}}
	s.sweep.Queue, s.sweep.Book = store, s.Book
	return s, counted, client
}

// storeFinalPayments writes payments with a final status and an empty outbox to the table.
func (s *sweepFixture) storeFinalPayments(t testing.TB, client *dynamodb.Client, from, target int) {
	t.Helper()
	const batch = 25
	var group sync.WaitGroup
	limit := make(chan struct{}, 4)
	for ; from < target; from += batch {
		var puts []types.WriteRequest
		for i := from; i < min(from+batch, target); i++ {
			e := s.NewReservedPayment(fmt.Sprint("DemoShop_", i))
			e.State, e.Status, e.FinalAt = ledger.Done, ledger.Successful, e.CreatedAt
			e.Reschedule()
			item, err := dynamo.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			// A put into the embedded engine is slower with a larger index. The sweep does not use this one.
			delete(item, "md")
			delete(item, "dk")
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			out, err := client.BatchWriteItem(context.Background(), &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{"ledger": puts},
			})
			if err != nil || len(out.UnprocessedItems) != 0 {
				t.Errorf("fill the table: %v", err)
			}
		})
	}
	group.Wait()
}

// countRequests returns the requests of a sweep without due entries, with one notification, and with one lookup.
func (s *sweepFixture) countRequests(t testing.TB, counted *countingTransport, suffix string) [3]string {
	t.Helper()
	ctx := context.Background()
	var counts [3]string
	run := func() string {
		counted.take()
		s.runSweep(t)
		return counted.take()
	}
	counts[0] = run()
	insert := func(e *ledger.Entry) {
		if _, err := s.Book.Store.Insert(ctx, e, ledger.Reserve); err != nil {
			t.Fatal(err)
		}
	}
	insert(s.StoreDueNotification("DemoShop_final" + suffix))
	counts[1] = run()
	insert(s.StorePendingPayment("DemoShop_pending"+suffix, func(e *ledger.Entry) { e.Poll.At = e.CreatedAt }))
	counts[2] = run()
	return counts
}

// expectedCounts are the counts of countRequests: 16 queries, and one read and two writes for each due entry.
var expectedCounts = [3]string{
	"map[Query:16]", "map[GetItem:1 PutItem:2 Query:16]", "map[GetItem:1 PutItem:2 Query:16]",
}

// The cost of a sweep depends on the due entries, not on the size of the table. The embedded engine's writes are slower
// in a larger table, so TestNothingDue has 100,000 payments in memory.
func TestRequestsOnTheTable(t *testing.T) {
	s, counted, client := newFixtureOnTable(t)
	s.Operator.SetStatus("Failed")
	if few := s.countRequests(t, counted, "-few"); few != expectedCounts {
		t.Errorf("requests %v, want %v", few, expectedCounts)
	}
	final := 2000
	if testing.Short() {
		final = 100
	}
	s.storeFinalPayments(t, client, 0, final)
	if many := s.countRequests(t, counted, "-many"); many != expectedCounts {
		t.Errorf("requests %v with %d final payments, want %v", many, final, expectedCounts)
	}
}
