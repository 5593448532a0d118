package gatewayctl

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	"mobilegateway/world/awscalls"
	"mobilegateway/world/secrets"
	"mobilegateway/world/streams"
)

// newLocalAWSTool returns a tool with real stores and, like a new deployment, secrets without a value. The recorder has
// each call of the tool, by the template's names.
func newLocalAWSTool(t *testing.T) (*testTool, *awsclient.Client, *awscalls.Recorder) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a database")
	}
	d := newTestTool(t)
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
	}, "LOCAL", func() {})
	database := httptest.NewServer(record.WrapDynamoDB(streams.NewProxy(engine)))
	t.Cleanup(database.Close)
	server := httptest.NewServer(record.WrapSecretsManager(vault))
	t.Cleanup(server.Close)
	d.logs = &stubLogs{}
	logs := httptest.NewServer(d.logs)
	t.Cleanup(logs.Close)
	for name, value := range map[string]string{
		"AUDIT_LOG_GROUP": auditGroup, "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": logs.URL,
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "LOCAL", "AWS_SECRET_ACCESS_KEY": "local",
		"AWS_ENDPOINT_URL_DYNAMODB": database.URL, "AWS_ENDPOINT_URL_SECRETS_MANAGER": server.URL,
	} {
		d.variables[name] = value
	}
	own := maps.Clone(d.variables)
	own["AWS_ACCESS_KEY_ID"] = "OTHER" // the test's own calls are not the tool's
	d.connect = Connect
	client, err := awsclient.New(func(name string) string { return own[name] })
	if err != nil {
		t.Fatal(err)
	}
	makeTables(t, client)
	return d, client, record
}

func makeTables(t *testing.T, client *awsclient.Client) {
	t.Helper()
	for _, name := range []string{"ledger", "merchants", "limits"} {
		schema := ledgerdynamo.Schema(name)
		if name != "ledger" { // only the key
			schema.AttributeDefinitions = schema.AttributeDefinitions[:1]
			schema.GlobalSecondaryIndexes, schema.StreamSpecification = nil, nil
		}
		if _, err := client.DynamoDB().CreateTable(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommandsOnLocalAWS sets up a new deployment: keys, a merchant, a rotation, a replay and the audit.
func TestCommandsOnLocalAWS(t *testing.T) {
	d, client, _ := newLocalAWSTool(t)
	for _, ring := range []string{"tokens", "callbacks", "webhooks", "webhooks"} {
		d.apply("keys add " + ring)
	}
	checkEqual(t, "webhook keys", len(query[[]keyView](d, "keys list webhooks")), 2)
	d.expectExit("operator list --operator-secret none", ExitFailed, "there is no secret none")
	d.useSandboxOperator()

	shop := d.onboardShop()
	d.apply("token rotate ShopA", "host add ShopA b.example")
	d.expectExit("merchant add shopa --country ci --operator sandbox"+confirmFlags, ExitFailed,
		merchant.ErrNameTaken.Error())
	const count = 30
	store := ledgerdynamo.New(client.DynamoDB(), "ledger")
	for i := range count {
		e := d.addDeliveredPayment(shop, i, d.now.Add(time.Duration(i)*time.Second))
		e.Version = 1
		if _, err := store.Insert(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
	d.now = d.now.Add(time.Hour)
	result := query[resendResult](d,
		"deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-02"+confirmFlags)
	checkEqual(t, "replay", result, resendResult{count, []string{}, toShop(count)})
	e, err := store.Get(context.Background(), ledger.Key{Kind: ledger.Payment, ID: "ShopA_7"})
	if err != nil || !e.WakesRelay() || e.Version != 2 {
		t.Errorf("replayed payment: version %d, wakes the relay %v, %v", e.Version, e.WakesRelay(), err)
	}
	if _, out, _ := d.run("export ShopA --from 2026-03-01 --to 2026-03-01"); strings.Count(out, "\n") != count+1 {
		t.Errorf("export: %s", out)
	}
	outcomes := map[string]int{}
	for _, r := range query[[]Record](d, "audit") {
		outcomes[r.What+" "+r.Outcome]++
	}
	for what, want := range map[string]int{"add a key done": 5, // onboardShop adds one too
		"add a merchant done": 1, "add a merchant failed": 1, "issue a token done": 1,
		"add notification hosts done": 1, "replay deliveries done": 1, "set operators' credentials done": 1} {
		if outcomes[what] != want {
			t.Errorf("%s: %d records, want %d of %v", what, outcomes[what], want, outcomes)
		}
	}
	checkEqual(t, "merchants, without audit records", len(query[[]merchantView](d, "merchant list")), 1)
}

func TestConcurrentSecretChangeIsRefused(t *testing.T) {
	d, client, _ := newLocalAWSTool(t)
	store := secretsManagerStore{client.SecretsManager()}
	d.apply("keys add tokens")
	current, err := store.Get(t.Context(), "token-keys")
	if err != nil {
		t.Fatal(err)
	}
	dryRun := readOnlySecrets{store}
	if err := dryRun.Put(t.Context(), current, []byte("mine")); err != nil {
		t.Errorf("dry run of Put to an unchanged secret: %v", err)
	}
	d.apply("keys add tokens")
	for what, err := range map[string]error{
		"Put":            store.Put(t.Context(), current, []byte("mine")),
		"dry run of Put": dryRun.Put(t.Context(), current, []byte("mine")),
	} {
		if err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
			t.Errorf("%s over a concurrent change: %v", what, err)
		}
	}
}
