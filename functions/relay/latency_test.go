package relay_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	local "mobilegateway/world/streams"

	"mobilegateway/functions/relay"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/world/dynoxide"
	"mobilegateway/world/template"
)

// lambdaInvoker invokes the relay with a timeout, as Lambda does.
type lambdaInvoker struct{ *relay.Relay }

func (i lambdaInvoker) Invoke(ctx context.Context, payload []byte) ([]byte, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := i.Relay.Invoke(ctx, payload)
	return result, err != nil, nil
}

// BenchmarkFirstNotification measures the time from the write of a final status to the arrival at the merchant's
// server. It uses the stream of the embedded DynamoDB, the local run's pump with the filter of template.yaml, and the
// relay. It fails if the 99th percentile is over 2 s.
func BenchmarkFirstNotification(b *testing.B) {
	s, book := newFixtureOnTable(b)
	const payments = 200
	for b.Loop() {
		var waits []time.Duration
		for i := range payments {
			id := fmt.Sprintf("DemoShop_%d%06d", time.Now().UnixMilli(), i)
			reservation, _, err := book.Reserve(context.Background(), storeRealPayment(s, id), nil)
			if err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			final, err := book.ApplyChange(context.Background(), reservation, func(e *ledger.Entry) ledger.Transition {
				report := ledger.StatusReport{Status: ledger.Failed, Source: "getStatus"}
				return ledger.EndPayment.After(e.ApplyFinalStatus(report, ledger.Timestamp(time.Now())))
			})
			if err != nil {
				b.Fatal(err)
			}
			waits = append(waits, s.measureDelivery(b, final.Outbox.Head().ID, began))
		}
		slices.Sort(waits)
		p99 := waits[len(waits)*99/100]
		b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "ms/p50")
		b.ReportMetric(float64(p99.Microseconds())/1000, "ms/p99")
		if p99 > 2*time.Second {
			b.Fatalf("p99 is %s", p99)
		}
	}
}

// measureDelivery waits until a notification has arrived, and returns the time since began.
func (s *relayFixture) measureDelivery(b *testing.B, id string, began time.Time) time.Duration {
	b.Helper()
	for {
		for _, post := range slices.Backward(s.MerchantServer.Received("")) {
			if post.ID() == id {
				return time.Since(began)
			}
		}
		if time.Since(began) > 30*time.Second {
			b.Fatal("the notification did not arrive within 30 s")
		}
		time.Sleep(time.Millisecond)
	}
}

// storeRealPayment returns a reservation by the real clock, which the pump and the engine use.
func storeRealPayment(s *relayFixture, id string) *ledger.Entry {
	e := s.NewReservedPayment(id)
	e.LeaseUntil = time.Now().Add(time.Minute)
	return e
}

// newFixtureOnTable returns a relay behind the stream of a table in the embedded server.
func newFixtureOnTable(b *testing.B) (*relayFixture, *ledger.Book) {
	b.Helper()
	s := newFixture(b)
	deployed, err := template.Load("../../template.yaml", template.Options{StackName: "bench", Region: "us-east-1"})
	if err != nil {
		b.Fatal(err)
	}
	server, err := dynoxide.Start(context.Background(), "")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.Endpoint()),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	schema := dynamo.Schema("ledger")
	schema.StreamSpecification = &types.StreamSpecification{
		StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage,
	}
	if _, err := client.CreateTable(context.Background(), schema); err != nil {
		b.Fatal(err)
	}
	store := dynamo.New(client, "ledger")
	book := &ledger.Book{Store: store, Reader: store, Now: time.Now, Rand: &operationtest.UniqueReader{}}
	s.relay.Book, s.relay.Now = book, time.Now
	s.Courier.Now = time.Now
	streamReader := &local.Pump{
		Client: local.NewClient(server.Endpoint(), "us-east-1", "local", "local", time.Now), Table: "ledger",
		Stream: deployed.Function("relay").Streams[0], Function: lambdaInvoker{s.relay},
		Checkpoint: filepath.Join(b.TempDir(), "checkpoint.json"), Now: time.Now, Logf: b.Logf,
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		streamReader.Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-stopped
	})
	return s, book
}
