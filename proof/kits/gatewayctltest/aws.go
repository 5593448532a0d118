package gatewayctltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/awsclient"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/world/awscalls"
	"mobilegateway/world/secrets"
	"mobilegateway/world/streams"
)

// NewOnLocalAWS returns a tool with real stores and, like a new deployment, secrets without a value. The recorder has
// each call of the tool, by the template's names.
func NewOnLocalAWS(t *testing.T) (*Tool, *awsclient.Client, *awscalls.Recorder) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a database")
	}
	d := New(t)
	versions := 0
	vault, err := secrets.Open(filepath.Join(t.TempDir(), "secrets.json"), time.Now, func() string {
		versions++
		return fmt.Sprintf("00000000-0000-4000-8000-%012d", versions)
	})
	if err == nil {
		err = vault.Ensure("operators", "token-keys", "token-public-keys", "callback-keys", "webhook-keys")
	}
	if err != nil {
		t.Fatal(err)
	}
	engine, err := url.Parse(dynamotest.StartEndpoint(t))
	if err != nil {
		t.Fatal(err)
	}
	record := awscalls.New(map[string]string{"LOCAL": "gatewayctl"}, map[string]string{
		"ledger": "LedgerTable", "merchants": "MerchantTable", "limits": "LimitTable",
	}, "LOCAL")
	database := httptest.NewServer(record.WrapDynamoDB(streams.NewProxy(engine)))
	t.Cleanup(database.Close)
	server := httptest.NewServer(record.WrapSecretsManager(vault))
	t.Cleanup(server.Close)
	d.Logs = &Logs{}
	logs := httptest.NewServer(d.Logs)
	t.Cleanup(logs.Close)
	for name, value := range map[string]string{
		"AUDIT_LOG_GROUP": auditGroup, "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": logs.URL,
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "LOCAL", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_ENDPOINT_URL_DYNAMODB": database.URL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": server.URL,
	} {
		d.Variables[name] = value
	}
	own := maps.Clone(d.Variables)
	own["AWS_ACCESS_KEY_ID"] = "OTHER" // the test's own calls are not the tool's
	d.Connect = deployment.Connect
	client, err := awsclient.New(func(name string) string { return own[name] })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ledger", "merchants", "limits"} { // the other two use only the key
		if _, err := client.DynamoDB().CreateTable(t.Context(), ledgerdynamo.Schema(name)); err != nil {
			t.Fatal(err)
		}
	}
	return d, client, record
}

// auditGroup is the log group of the tests.
const auditGroup = "audit-group"

// Logs is CloudWatch Logs with one stream. It returns one event in a page.
type Logs struct {
	mutex    sync.Mutex
	events   []map[string]any
	Actions  []string
	Rejected bool // all lines
}

// ServeHTTP implements http.Handler.
func (l *Logs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct {
		LogGroupName, LogStreamName, NextToken string
		StartFromHead                          bool
		LogEvents                              []map[string]any
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || in.LogGroupName != auditGroup || in.LogStreamName != "audit" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.Actions = append(l.Actions, action)
	out := map[string]any{}
	switch {
	case action == "PutLogEvents" && l.Rejected:
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
