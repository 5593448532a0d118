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

	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/dynamotest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

// countingTransport counts the requests of each operation.
type countingTransport struct {
	mutex sync.Mutex
	count map[string]int
}

func (w *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mutex.Lock()
	w.count[operation]++
	w.mutex.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

func (w *countingTransport) reset() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.count = map[string]int{}
}

func (w *countingTransport) String() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return fmt.Sprint(w.count)
}

// newFixtureOnTable is a sweep over a table of the embedded server, with requests that are counted.
func newFixtureOnTable(t testing.TB) (*sweepFixture, *countingTransport, *dynamodb.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	counted := &countingTransport{count: map[string]int{}}
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(dynamotest.StartEndpoint(t)), HTTPClient: &http.Client{Transport: counted},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	if _, err := client.CreateTable(ctx, dynamo.Schema("ledger")); err != nil {
		t.Fatal(err)
	}
	s := newFixture(t)
	store := dynamo.New(client, "ledger")
	s.Book = &ledger.Book{Store: store, Reader: store, Now: s.Clock.Now, Rand: &deliverytest.UniqueReader{}}
	s.sweep.Queue, s.sweep.Book = store, s.Book
	return s, counted, client
}

// storeFinalPayments fills the table with payments that are final and told.
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
			// Each put into the embedded engine costs more the larger an index is: the sweep has no use for this one.
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
				t.Errorf("filling the table: %v", err)
			}
		})
	}
	group.Wait()
}

// countRequests are the requests of an empty sweep, of one that tells a merchant, and of one that looks a payment up, on the
// table as it is.
func (s *sweepFixture) countRequests(t testing.TB, counted *countingTransport, suffix string) [3]string {
	t.Helper()
	ctx := context.Background()
	var counts [3]string
	run := func() string {
		counted.reset()
		s.runSweep(t)
		return counted.String()
	}
	counts[0] = run()
	insert := func(e *ledger.Entry) {
		if _, err := s.Book.Store.Insert(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	insert(s.StoreDueNotification("DemoShop_told" + suffix))
	counts[1] = run()
	insert(s.StorePendingPayment("DemoShop_asked"+suffix, func(e *ledger.Entry) { e.PollAt = e.CreatedAt }))
	counts[2] = run()
	return counts
}

// On the table a sweep costs what is due, not what is there: 16 queries, and one read and two writes for each entry.
func TestRequestsOnTheTable(t *testing.T) {
	s, counted, client := newFixtureOnTable(t)
	s.Operator.SetStatus("Failed")
	few := s.countRequests(t, counted, "-few")
	want := [3]string{"map[Query:16]", "map[GetItem:1 PutItem:2 Query:16]", "map[GetItem:1 PutItem:2 Query:16]"}
	if few != want {
		t.Errorf("requests %v, want %v", few, want)
	}
	s.storeFinalPayments(t, client, 0, 2000)
	if many := s.countRequests(t, counted, "-many"); many != few {
		t.Errorf("requests %v with 2,000 settled payments, %v without", many, few)
	}
}

// BenchmarkSweepWithFinalEntries checks that a sweep costs the same requests however many payments are settled, and measures
// one over an index with nothing due. The embedded engine's writes grow slower with the table: TestNothingDue has the
// 100,000, in memory.
func BenchmarkSweepWithFinalEntries(b *testing.B) {
	for _, updated := range []int{10, 5_000} {
		b.Run(fmt.Sprint(updated), func(b *testing.B) {
			s, counted, client := newFixtureOnTable(b)
			s.storeFinalPayments(b, client, 0, updated)
			s.Operator.SetStatus("Failed")
			want := [3]string{"map[Query:16]", "map[GetItem:1 PutItem:2 Query:16]", "map[GetItem:1 PutItem:2 Query:16]"}
			if got := s.countRequests(b, counted, "-bench"); got != want {
				b.Fatalf("requests %v, want %v", got, want)
			}
			for b.Loop() {
				s.runSweep(b)
			}
		})
	}
}
