package streams_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/awsclient"
	"mobilegateway/world/lambda"
	"mobilegateway/world/streams"
	"mobilegateway/world/template"
)

// engine is a DynamoDB of one test.
type engine struct {
	endpoint string
	client   *streams.Client
	sdk      *dynamodb.Client
}

func newEngine(t *testing.T) engine {
	t.Helper()
	endpoint := dynamotest.StartEndpoint(t)
	environment := map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "b",
		"AWS_ENDPOINT_URL_DYNAMODB": endpoint,
	}
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	return engine{
		endpoint: endpoint, sdk: client.DynamoDB(),
		client: streams.NewClient(endpoint, "us-east-1", "A", "b", time.Now),
	}
}

// newTable returns an engine with the table.
func newTable(t *testing.T) engine {
	t.Helper()
	e := newEngine(t)
	e.ensure(t)
	return e
}

func (e engine) ensure(t *testing.T) {
	t.Helper()
	if err := e.client.EnsureTables(t.Context(), []template.Table{table()}); err != nil {
		t.Fatal(err)
	}
}

func (e engine) put(t *testing.T, key, fast string) {
	t.Helper()
	item := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}}
	if fast != "" {
		item["fast"] = &types.AttributeValueMemberS{Value: fast}
	}
	_, err := e.sdk.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Table"), Item: item})
	if err != nil {
		t.Fatal(err)
	}
}

func table() template.Table {
	return template.Table{
		LogicalID: "T", Name: "Table", StreamView: "NEW_IMAGE",
		Attributes: []template.Attribute{
			{AttributeName: "pk", AttributeType: "S"}, {AttributeName: "due_shard", AttributeType: "S"},
		},
		Key: []template.KeyElement{{AttributeName: "pk", KeyType: "HASH"}},
		Indexes: []template.Index{{
			IndexName: "due", Projection: template.Projection{ProjectionType: "KEYS_ONLY"},
			KeySchema: []template.KeyElement{{AttributeName: "due_shard", KeyType: "HASH"}},
		}},
	}
}

func TestTablesAreMadeOnceAndComparedAfter(t *testing.T) {
	e := newEngine(t)
	for range 2 {
		e.ensure(t)
	}
	e.put(t, "kept", "")
	changes := map[string]func(*template.Table){
		"another key":      func(c *template.Table) { c.Key[0].AttributeName = "other" },
		"no index":         func(c *template.Table) { c.Indexes = nil },
		"an index renamed": func(c *template.Table) { c.Indexes[0].IndexName = "other" },
	}
	for name, change := range changes {
		other := table()
		change(&other)
		err := e.client.EnsureTables(t.Context(), []template.Table{other})
		if err == nil || !strings.Contains(err.Error(), "RESET=1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.client.DeleteTables(t.Context(), []template.Table{table()}); err != nil {
		t.Fatal(err)
	}
	e.ensure(t)
	got, err := e.sdk.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("Table")})
	if err != nil || got.Count != 0 {
		t.Errorf("after deleting: %d items, %v", got.Count, err)
	}
}

// step is the outcome of one invocation with the records of these keys and sequence numbers.
type step = func(keys, sequences []string) (response string, functionError bool)

// relay is a stub of a function. Each invocation runs the next step; the last step repeats.
type relay struct {
	mu    sync.Mutex
	steps []step
	calls [][]string
	taken chan string
}

func takeAll([]string, []string) (string, bool) { return `{"batchItemFailures":[]}`, false }

func (r *relay) Invoke(_ context.Context, in lambda.Event) (lambda.Result, error) {
	var event struct {
		Records []struct {
			EventSourceARN string `json:"eventSourceARN"`
			EventSource    string `json:"eventSource"`
			DynamoDB       struct {
				SequenceNumber string
				NewImage       map[string]map[string]string
			} `json:"dynamodb"`
		}
	}
	if err := json.Unmarshal(in.Payload, &event); err != nil {
		return lambda.Result{}, err
	}
	var keys, sequences []string
	for _, record := range event.Records {
		if record.EventSourceARN == "" || record.EventSource != "aws:dynamodb" {
			return lambda.Result{}, fmt.Errorf("not a stream event: %s", in.Payload)
		}
		keys = append(keys, record.DynamoDB.NewImage["pk"]["S"])
		sequences = append(sequences, record.DynamoDB.SequenceNumber)
	}
	r.mu.Lock()
	r.calls = append(r.calls, keys)
	step := r.steps[0]
	if len(r.steps) > 1 {
		r.steps = r.steps[1:]
	}
	r.mu.Unlock()
	response, failed := step(keys, sequences)
	for _, key := range keys {
		r.taken <- key
	}
	return lambda.Result{Payload: []byte(response), FunctionError: failed}, nil
}

// newPump returns a pump over table T whose filter matches records with fast = 1.
func newPump(t *testing.T, e engine, r *relay, checkpoint string) *streams.Pump {
	t.Helper()
	filter, err := template.NewFilter(`{"dynamodb":{"NewImage":{"fast":{"S":["1"]}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if r.taken == nil {
		r.taken = make(chan string, 1000)
	}
	return &streams.Pump{
		Client: e.client, Table: "Table", Function: r, Checkpoint: checkpoint, Now: time.Now,
		Stream: template.Stream{
			Table: "T", BatchSize: 10, MaxRetryAttempts: 2, BisectOnError: true, ReportsItemFailures: true,
			Filters: []template.Filter{filter},
		},
		Logf: func(string, ...any) {},
	}
}

// run runs a pump until the function has received a key n times.
func run(t *testing.T, p *streams.Pump, r *relay, key string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		p.Run(ctx)
		close(done)
	}()
	for n > 0 {
		select {
		case seen := <-r.taken:
			if seen == key {
				n--
			}
		case <-ctx.Done():
			t.Fatalf("%s was not seen often enough; calls %v", key, r.calls)
		}
	}
	cancel()
	<-done
}

func TestRecordsComeInOrderFilteredAndInBatches(t *testing.T) {
	e := newTable(t)
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("k%02d", i)
		want = append(want, key)
		e.put(t, key, "1")
		e.put(t, "slow-"+key, "0")
		e.put(t, "none-"+key, "")
	}
	r := &relay{steps: []step{takeAll}}
	run(t, newPump(t, e, r, filepath.Join(t.TempDir(), "checkpoint")), r, "k24", 1)
	if got := slices.Concat(r.calls...); !slices.Equal(got, want) {
		t.Errorf("records %v", got)
	}
	for _, call := range r.calls {
		if len(call) > 10 {
			t.Errorf("a batch of %d", len(call))
		}
	}
}

func TestThePumpGoesOnWhereItStopped(t *testing.T) {
	e := newTable(t)
	checkpoint := filepath.Join(t.TempDir(), "checkpoint")
	e.put(t, "a", "1")
	first := &relay{steps: []step{takeAll}}
	p := newPump(t, e, first, checkpoint)
	run(t, p, first, "a", 1)
	e.put(t, "slow", "0") // filtered out: the checkpoint may still be at "a"
	e.put(t, "b", "1")
	second := &relay{steps: []step{takeAll}}
	run(t, newPump(t, e, second, checkpoint), second, "b", 1)
	if got := slices.Concat(second.calls...); got[len(got)-1] != "b" || len(got) > 2 {
		t.Errorf("the second run got %v", got)
	}
}

func TestFailedRecordsAreTriedAgain(t *testing.T) {
	respond := func(response string) step { return func([]string, []string) (string, bool) { return response, false } }
	fail := func([]string, []string) (string, bool) { return `{"errorType":"x"}`, true }
	thirdFailed := func(_, sequences []string) (string, bool) {
		const response = `{"batchItemFailures":[{"itemIdentifier":%q},{"itemIdentifier":%q}]}`
		return fmt.Sprintf(response, sequences[3], sequences[2]), false
	}
	failOnB := func(keys, _ []string) (string, bool) { return "{}", slices.Contains(keys, "b") }
	const halved = "[[a b c d] [a b] [c d]]"
	cases := map[string]struct {
		steps []step
		last  string
		times int
		want  string
	}{
		"the third record failed":        {[]step{thirdFailed, takeAll}, "d", 2, "[[a b c d] [c d]]"},
		"the whole batch failed: halves": {[]step{fail, takeAll}, "d", 2, halved},
		"a response that is not JSON":    {[]step{respond("?"), takeAll}, "d", 2, halved},
		"an unknown identifier": {
			[]step{respond(`{"batchItemFailures":[{"itemIdentifier":""}]}`), takeAll}, "d", 2, halved,
		},
		"one record always fails": {[]step{failOnB}, "d", 2, "[[a b c d] [a b] [a] [b] [b] [b] [c d]]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newTable(t)
			for _, key := range []string{"a", "b", "c", "d"} {
				e.put(t, key, "1")
			}
			r := &relay{steps: c.steps}
			run(t, newPump(t, e, r, filepath.Join(t.TempDir(), "checkpoint")), r, c.last, c.times)
			if got := fmt.Sprint(r.calls); got != c.want {
				t.Errorf("calls %s, want %s", got, c.want)
			}
		})
	}
}

// TestSlowItemDelaysOnlyItself blocks on the first item until those of other lanes have come.
func TestSlowItemDelaysOnlyItself(t *testing.T) {
	e := newTable(t)
	for _, key := range []string{"slow", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		e.put(t, key, "1")
	}
	var others atomic.Int64
	release := make(chan struct{})
	r := &relay{steps: []step{func(keys, _ []string) (string, bool) {
		if !slices.Contains(keys, "slow") && others.Add(1) == 2 {
			close(release)
		} else if slices.Contains(keys, "slow") {
			select {
			case <-release:
			case <-t.Context().Done():
			}
		}
		return "", false // an empty response is a success
	}}}
	p := newPump(t, e, r, filepath.Join(t.TempDir(), "checkpoint"))
	p.Stream.ParallelizationFactor = 10
	run(t, p, r, "slow", 1)
}

func TestRecordsThatAreTooOldAreLeftOut(t *testing.T) {
	e := newTable(t)
	e.put(t, "old", "1")
	r := &relay{steps: []step{takeAll}}
	p := newPump(t, e, r, filepath.Join(t.TempDir(), "checkpoint"))
	p.Stream.MaxRecordAge = time.Minute
	p.Now = func() time.Time { return time.Now().Add(2*time.Minute + time.Second) }
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	p.Run(ctx)
	if len(r.calls) != 0 {
		t.Errorf("calls %v", r.calls)
	}
}

// TestAMinuteIsOneMoment: DynamoDB Local rounds the creation time of a record down to the minute. A record created at
// the end of a minute must not count as too old.
func TestAMinuteIsOneMoment(t *testing.T) {
	e := newTable(t)
	e.put(t, "young", "1")
	r := &relay{steps: []step{takeAll}}
	p := newPump(t, e, r, filepath.Join(t.TempDir(), "checkpoint"))
	p.Stream.MaxRecordAge = time.Minute
	p.Now = func() time.Time { return time.Now().Add(p.Stream.MaxRecordAge) }
	run(t, p, r, "young", 1)
}

// TestShardsAreNotListedInEachRound: an engine may read its whole stream for DescribeStream.
func TestShardsAreNotListedInEachRound(t *testing.T) {
	e := newTable(t)
	target, err := url.Parse(e.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var lists, reads atomic.Int64
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch operation := request.Header.Get("X-Amz-Target"); {
		case strings.HasSuffix(operation, ".DescribeStream"):
			lists.Add(1)
		case strings.HasSuffix(operation, ".GetRecords"):
			if reads.Add(1) == 3 {
				cancel()
			}
		}
		forward.ServeHTTP(w, request)
	}))
	defer proxy.Close()
	e.client = streams.NewClient(proxy.URL, "us-east-1", "A", "b", time.Now)
	newPump(t, e, &relay{steps: []step{takeAll}}, filepath.Join(t.TempDir(), "checkpoint")).Run(ctx)
	if reads.Load() != 3 || lists.Load() != 1 {
		t.Errorf("%d calls of DescribeStream in %d rounds, want one in 3", lists.Load(), reads.Load())
	}
}

func TestAnEndpointThatRefuses(t *testing.T) {
	client := streams.NewClient("http://127.0.0.1:1", "us-east-1", "A", "b", time.Now)
	if err := client.EnsureTables(t.Context(), []template.Table{table()}); err == nil {
		t.Error("no error")
	}
}
