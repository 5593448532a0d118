package gatewayctl

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
)

// auditGroup is the log group of the tests.
const auditGroup = "audit-group"

// stubLogs is CloudWatch Logs with one stream. It returns one event in a page.
type stubLogs struct {
	mutex    sync.Mutex
	events   []map[string]any
	actions  []string
	rejected bool // all lines
}

// ServeHTTP implements http.Handler.
func (l *stubLogs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct {
		LogGroupName, LogStreamName, NextToken string
		StartFromHead                          bool
		LogEvents                              []map[string]any
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.LogGroupName != auditGroup || in.LogStreamName != auditStream {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.actions = append(l.actions, action)
	out := map[string]any{}
	switch {
	case action == "PutLogEvents" && l.rejected:
		out["rejectedLogEventsInfo"] = map[string]any{"tooNewLogEventStartIndex": 0}
	case action == "PutLogEvents":
		l.events = append(l.events, in.LogEvents...)
	default:
		at := 0
		_, _ = fmt.Sscanf(in.NextToken, "f/%d", &at)
		page := l.events[at:min(at+1, len(l.events))]
		out["events"], out["nextForwardToken"] = page, fmt.Sprint("f/", at+len(page))
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out)
}

// TestTwoCommandsAtOnce: commands that run together write one chain without a gap.
func TestTwoCommandsAtOnce(t *testing.T) {
	d, client, _ := newLocalAWSTool(t)
	audit := auditTable{client.DynamoDB(), "merchants"}
	const commands, records = 4, 10
	var group sync.WaitGroup
	for command := range commands {
		group.Go(func() {
			for i := range records {
				r := Record{ID: fmt.Sprint(command, "-", i), Who: "ama", Outcome: OutcomeStarted}
				if _, err := audit.Append(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	items, err := audit.Items(t.Context())
	if err != nil || len(items) != commands*records {
		t.Fatalf("%d items, %v", len(items), err)
	}
	result := verifyAudit(items, []string{lastDocument(items)}, chainStart)
	checkEqual(t, "faults", faultsOf(result), "")
	checkEqual(t, "last sequence", lastLink(items).sequence, commands*records)
	checkEqual(t, "calls of the log", len(d.logs.actions), 0)
}

// lastDocument is the text of the last item of a chain.
func lastDocument(items []AuditItem) string {
	last := lastLink(items)
	i := slices.IndexFunc(items, func(item AuditItem) bool { return readAuditItem(item).link.hash == last.hash })
	return items[i].Document
}

// TestAppendReplacesNothing: a record keeps its place with every head, and a repeated write adds nothing.
func TestAppendReplacesNothing(t *testing.T) {
	_, client, _ := newLocalAWSTool(t)
	audit := auditTable{client.DynamoDB(), "merchants"}
	count := 0
	add := func() AuditItem {
		count++
		item, err := audit.Append(t.Context(), Record{ID: fmt.Sprint(count), Outcome: OutcomeStarted})
		if err != nil {
			t.Fatal(err)
		}
		return item
	}
	add()
	second := add()
	if repeated, err := audit.insert(t.Context(), second); repeated != second || err != nil {
		t.Errorf("the same write again: %v, %v", repeated, err)
	}
	other := AuditItem{second.Key, "{}"}
	if stored, err := audit.insert(t.Context(), other); stored != second || err != nil {
		t.Errorf("another write to the same place: %v, %v", stored, err)
	}
	for name, head := range map[string]dynamoitem.Item{
		"late": {headSequence: dynamoitem.Number(1), headHash: dynamoitem.Text("x")},
		"none": {}, "damaged": {headSequence: dynamoitem.Text("x"), headHash: dynamoitem.Text("x")},
	} {
		head[dynamoitem.KeyAttribute] = dynamoitem.Text(headKey)
		_, err := client.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("merchants"), Item: head,
		})
		if err != nil {
			t.Fatal(err)
		}
		add()
		items, err := audit.Items(t.Context())
		if err != nil || len(items) != count {
			t.Errorf("head %s: %d items, %v", name, len(items), err)
		}
		checkEqual(t, "faults", faultsOf(verifyAudit(items, []string{lastDocument(items)}, chainStart)), "")
	}
}

// TestFarRecordBlocksNothing: a forged item far behind the end is a fault. Neither it nor a forged head stops a command
// or takes its record out of the chain.
func TestFarRecordBlocksNothing(t *testing.T) {
	head := func(sequence string) dynamoitem.Item {
		number := &types.AttributeValueMemberN{Value: sequence}
		return dynamoitem.Item{headSequence: number, headHash: dynamoitem.Text("x")}
	}
	document := dynamoitem.Item{auditDocument: dynamoitem.Text(`{"id":"far","outcome":"done"}`)}
	for name, item := range map[string]dynamoitem.Item{
		"audit#000000000200": document, "audit#999999999998": document, "audit#999999999999": document,
		"audit#9223372036854775807": document, "audit#99999999999999999999999": document,
		"audit-head far": head("999999999997"), "audit-head last": head("999999999999"),
		"audit-head beyond": head("9223372036854775807"), "audit-head before": head("-9223372036854775808"),
	} {
		t.Run(name, func(t *testing.T) {
			d, client, _ := newLocalAWSTool(t)
			put := func(key string, item dynamoitem.Item) {
				item = maps.Clone(item)
				item[dynamoitem.KeyAttribute] = dynamoitem.Text(key)
				_, err := client.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
					TableName: aws.String("merchants"), Item: item,
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			d.apply("keys add tokens")
			key, _, isHead := strings.Cut(name, " ")
			put(key, item)
			if !isHead {
				d.expectExit("audit verify", ExitFailed, "fault")
				put(headKey, dynamoitem.Item{}) // so the end is found by the items
			}
			d.apply("keys add callbacks", "keys add webhooks", "keys add callbacks", "keys add webhooks")
			result := auditResult{}
			_, out, _ := d.run("audit verify --json")
			if err := json.Unmarshal([]byte(out), &result); err != nil {
				t.Fatal(err, out)
			}
			checkEqual(t, "copies of five changes", result.Copies, 10)
			for _, f := range result.Faults {
				if f.What == "add a key" {
					t.Errorf("the record of a command is a fault: %+v", f)
				}
			}
		})
	}
}

// TestTamperingIsFound: verify finds what a person with the table's permissions did, by the log's copies.
func TestTamperingIsFound(t *testing.T) {
	d, client, _ := newLocalAWSTool(t)
	d.apply("keys add tokens", "keys add callbacks", "keys add webhooks")
	d.expectExit("audit verify", ExitDone, "no fault")
	table := client.DynamoDB()
	remove := func(key string) {
		_, err := table.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: aws.String("merchants"), Key: dynamoitem.Key(key),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	remove("audit#000000000005")
	remove("audit#000000000006")
	remove(headKey)
	d.expectExit("audit verify", ExitFailed, "2 faults")
	d.expectOutput("audit", "add a key", "add a key") // the rest is still shown
	d.apply("keys add tokens")                        // takes their places
	result := auditResult{}
	_, out, _ := d.run("audit verify --json")
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatal(err, out)
	}
	checkEqual(t, "faults", faultsOf(result), "5 changed, 6 changed")
	if !strings.Contains(result.Faults[0].Detail, "ring webhooks") {
		t.Errorf("the fault does not show the copy: %s", result.Faults[0].Detail)
	}
}

// TestRejectedCopy: the service accepts a request whose line it rejects. Nothing is changed then.
func TestRejectedCopy(t *testing.T) {
	d, _, _ := newLocalAWSTool(t)
	d.logs.rejected = true
	d.expectExit("keys add tokens"+confirmFlags, ExitFailed, "nothing was done")
	d.logs.rejected = false
	d.expectExit("audit verify", ExitFailed, "1 fault") // the record without a copy
	d.apply("keys add tokens")
	d.expectExit("audit verify", ExitDone, "1 without a copy")
	checkEqual(t, "keys", len(query[[]keyView](d, "keys list tokens")), 1)
}

// TestCaller: AWS says who runs the tool. Only tables and secrets of this machine trust the machine's user.
func TestCaller(t *testing.T) {
	const arn = "arn:aws:sts::123456789012:assumed-role/onboarding/ama"
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "Action=GetCallerIdentity") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>%s</Arn>`+
			`</GetCallerIdentityResult></GetCallerIdentityResponse>`, arn)
	}))
	t.Cleanup(sts.Close)
	for name, c := range map[string]struct{ tables, secrets, user, want string }{
		"local run":             {"http://127.0.0.1:1", "http://localhost:2", "kofi", "local:kofi"},
		"local run by IPv6":     {"http://[::1]:1", "http://127.0.0.1:2", "kofi", "local:kofi"},
		"private tables":        {"http://10.0.0.1:1", "http://127.0.0.1:2", "kofi", arn},
		"private secrets":       {"http://127.0.0.1:1", "http://10.0.0.1:2", "kofi", arn},
		"a name with localhost": {"http://localhost.example", "http://localhost:2", "kofi", arn},
		"secrets of AWS":        {"http://127.0.0.1:1", "", "kofi", arn},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{
				"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S",
				"AWS_ENDPOINT_URL_DYNAMODB": c.tables, "AWS_ENDPOINT_URL_SECRETS_MANAGER": c.secrets,
				"AWS_ENDPOINT_URL_STS": sts.URL, auditFileVariable: "copies",
			}
			stores, err := Connect(System{Getenv: func(name string) string { return values[name] }, User: c.user},
				Deployment{LedgerTable: "l", MerchantTable: "m"})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := stores.Caller(t.Context()); got != c.want || err != nil {
				t.Errorf("caller %q, %v, want %q", got, err, c.want)
			}
			if isLocal := strings.HasPrefix(c.want, "local:"); (stores.AuditCopies != nil) != isLocal {
				t.Errorf("a file has the copies: %v, want %v", stores.AuditCopies != nil, isLocal)
			}
		})
	}
}
