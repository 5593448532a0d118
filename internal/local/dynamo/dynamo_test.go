package dynamo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/internal/dynamotest"
	"mobilegateway/internal/local/dynamo"
	"mobilegateway/internal/template"
	"mobilegateway/shared/awsclient"
)

// engine is a DynamoDB of the test's own.
type engine struct {
	client *dynamo.Client
	sdk    *dynamodb.Client
}

func newEngine(t *testing.T) engine {
	t.Helper()
	endpoint := dynamotest.StartEndpoint(t)
	environment := map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
	}
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	return engine{client: dynamo.NewClient(endpoint, "us-east-1", "A", "b", time.Now), sdk: client.DynamoDB()}
}

func (e engine) put(t *testing.T, key, fast string) {
	t.Helper()
	item := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}}
	if fast != "" {
		item["fast"] = &types.AttributeValueMemberS{Value: fast}
	}
	if _, err := e.sdk.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Table"), Item: item}); err != nil {
		t.Fatal(err)
	}
}

func table() template.Table {
	return template.Table{
		LogicalID: "T", Name: "Table", StreamView: "NEW_IMAGE",
		Attributes: []template.Attribute{{AttributeName: "pk", AttributeType: "S"}, {AttributeName: "due_shard", AttributeType: "S"}},
		Key:        []template.KeyElement{{AttributeName: "pk", KeyType: "HASH"}},
		Indexes: []template.Index{{
			IndexName: "due", Projection: "KEYS_ONLY", Key: []template.KeyElement{{AttributeName: "due_shard", KeyType: "HASH"}},
		}},
	}
}

func TestTablesAreMadeOnceAndComparedAfter(t *testing.T) {
	e := newEngine(t)
	for range 2 {
		if err := e.client.EnsureTables(t.Context(), []template.Table{table()}); err != nil {
			t.Fatal(err)
		}
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
		if err := e.client.EnsureTables(t.Context(), []template.Table{other}); err == nil || !strings.Contains(err.Error(), "RESET=1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.client.DeleteTables(t.Context(), []template.Table{table()}); err != nil {
		t.Fatal(err)
	}
	if err := e.client.EnsureTables(t.Context(), []template.Table{table()}); err != nil {
		t.Fatal(err)
	}
	got, err := e.sdk.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("Table")})
	if err != nil || got.Count != 0 {
		t.Errorf("after deleting: %d items, %v", got.Count, err)
	}
}

// relay is a function that takes records as its script says: each invocation runs the next step, and the last one on.
type relay struct {
	mu    sync.Mutex
	steps []func(keys []string, sequences []string) (string, bool)
	calls [][]string
	taken chan string
}

func takeAll([]string, []string) (string, bool) { return `{"batchItemFailures":[]}`, false }

func (r *relay) Invoke(_ context.Context, payload []byte) ([]byte, bool, error) {
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
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, false, err
	}
	var keys, sequences []string
	for _, record := range event.Records {
		if record.EventSourceARN == "" || record.EventSource != "aws:dynamodb" {
			return nil, false, fmt.Errorf("not a stream event: %s", payload)
		}
		keys = append(keys, record.DynamoDB.NewImage["pk"]["S"])
		sequences = append(sequences, record.DynamoDB.SequenceNumber)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, keys)
	step := r.steps[0]
	if len(r.steps) > 1 {
		r.steps = r.steps[1:]
	}
	answer, failed := step(keys, sequences)
	for _, key := range keys {
		r.taken <- key
	}
	return []byte(answer), failed, nil
}

// newPump makes a pump over table T that lets records with fast = 1 pass.
func newPump(t *testing.T, e engine, r *relay, checkpoint string) *dynamo.Pump {
	t.Helper()
	filter, err := template.NewFilter(`{"dynamodb":{"NewImage":{"fast":{"S":["1"]}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if r.taken == nil {
		r.taken = make(chan string, 1000)
	}
	return &dynamo.Pump{
		Client: e.client, Table: "Table", Function: r, Checkpoint: checkpoint, Now: time.Now,
		Stream: template.Stream{Table: "T", BatchSize: 10, MaxRetryAttempts: 2, BisectOnError: true, ReportsItemFailures: true, Filters: []template.Filter{filter}},
		Logf:   func(string, ...any) {},
	}
}

// run pumps until the function has seen a key n times.
func run(t *testing.T, p *dynamo.Pump, r *relay, key string, n int) {
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
	e := newEngine(t)
	if err := e.client.EnsureTables(t.Context(), []template.Table{table()}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("k%02d", i)
		want = append(want, key)
		e.put(t, key, "1")
		e.put(t, "slow-"+key, "0")
		e.put(t, "none-"+key, "")
	}
	r := &relay{steps: []func([]string, []string) (string, bool){takeAll}}
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
	e := newEngine(t)
	if err := e.client.EnsureTables(t.Context(), []template.Table{table()}); err != nil {
		t.Fatal(err)
	}
	checkpoint := filepath.Join(t.TempDir(), "checkpoint")
	e.put(t, "a", "1")
	first := &relay{steps: []func([]string, []string) (string, bool){takeAll}}
	p := newPump(t, e, first, checkpoint)
	run(t, p, first, "a", 1)
	e.put(t, "slow", "0") // passed over: the checkpoint of "a" alone may stand
	e.put(t, "b", "1")
	second := &relay{steps: []func([]string, []string) (string, bool){takeAll}}
	run(t, newPump(t, e, second, checkpoint), second, "b", 1)
	if got := slices.Concat(second.calls...); got[len(got)-1] != "b" || len(got) > 2 {
		t.Errorf("the second run got %v", got)
	}
}

func TestFailedRecordsAreTriedAgain(t *testing.T) {
	fail := func([]string, []string) (string, bool) { return `{"errorType":"x"}`, true }
	cases := map[string]struct {
		steps []func([]string, []string) (string, bool)
		last  string
		times int
		want  string
	}{
		"the third record failed": {
			[]func([]string, []string) (string, bool){
				func(_, s []string) (string, bool) {
					return `{"batchItemFailures":[{"itemIdentifier":"` + s[3] + `"},{"itemIdentifier":"` + s[2] + `"}]}`, false
				}, takeAll,
			}, "d", 2, "[[a b c d] [c d]]",
		},
		"the whole batch failed: halves": {[]func([]string, []string) (string, bool){fail, takeAll}, "d", 2, "[[a b c d] [a b] [c d]]"},
		"an answer that is none":         {[]func([]string, []string) (string, bool){func([]string, []string) (string, bool) { return "?", false }, takeAll}, "d", 2, "[[a b c d] [a b] [c d]]"},
		"an unknown identifier": {
			[]func([]string, []string) (string, bool){
				func([]string, []string) (string, bool) { return `{"batchItemFailures":[{"itemIdentifier":""}]}`, false }, takeAll,
			}, "d", 2, "[[a b c d] [a b] [c d]]",
		},
		"one record poisons": {
			[]func([]string, []string) (string, bool){
				func(k, _ []string) (string, bool) { return "{}", slices.Contains(k, "b") },
			}, "d", 2, "[[a b c d] [a b] [a] [b] [b] [b] [c d]]",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t)
			if err := e.client.EnsureTables(t.Context(), []template.Table{table()}); err != nil {
				t.Fatal(err)
			}
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

func TestRecordsThatAreTooOldAreLeftOut(t *testing.T) {
	e := newEngine(t)
	if err := e.client.EnsureTables(t.Context(), []template.Table{table()}); err != nil {
		t.Fatal(err)
	}
	e.put(t, "old", "1")
	r := &relay{steps: []func([]string, []string) (string, bool){takeAll}}
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

// TestAMinuteIsOneMoment: DynamoDB Local says of each record made within a minute that it was made when that began. One made
// at a minute's end is not an old one.
func TestAMinuteIsOneMoment(t *testing.T) {
	e := newEngine(t)
	if err := e.client.EnsureTables(t.Context(), []template.Table{table()}); err != nil {
		t.Fatal(err)
	}
	e.put(t, "young", "1")
	r := &relay{steps: []func([]string, []string) (string, bool){takeAll}}
	p := newPump(t, e, r, filepath.Join(t.TempDir(), "checkpoint"))
	p.Stream.MaxRecordAge = time.Minute
	p.Now = func() time.Time { return time.Now().Add(p.Stream.MaxRecordAge) }
	run(t, p, r, "young", 1)
}

func TestAnEndpointThatRefuses(t *testing.T) {
	client := dynamo.NewClient("http://127.0.0.1:1", "us-east-1", "A", "b", time.Now)
	if err := client.EnsureTables(t.Context(), []template.Table{table()}); err == nil {
		t.Error("no error")
	}
}
