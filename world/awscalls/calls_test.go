package awscalls_test

import (
	"bytes"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/awsclient"
	"mobilegateway/world/awscalls"
	"mobilegateway/world/dynoxide"
	"mobilegateway/world/streams"
)

// authorization returns the Authorization header for an access key.
func authorization(key string) string {
	return "AWS4-HMAC-SHA256 Credential=" + key +
		"/20261121/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00"
}

func newRecorder() *awscalls.Recorder {
	return awscalls.New(map[string]string{"K1": "ChargeFunction", "K2": "SweepFunction"},
		map[string]string{"p-Ledger": "LedgerTable", "local/keys": "KeySecret"}, "RUN")
}

// send posts a call and returns the response.
func send(t *testing.T, address, key, target, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "dynamodb.example"
	request.Header.Set("X-Amz-Target", target)
	request.Header.Set("Authorization", authorization(key))
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestPermissions(t *testing.T) {
	engine := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	const dynamoDB = "DynamoDB_20120810."
	cases := map[string]struct {
		target, body string
		want         []string
	}{
		"an item": {
			dynamoDB + "GetItem", `{"TableName":"p-Ledger","Key":{}}`, []string{"dynamodb:GetItem LedgerTable"},
		},
		"an item of a kind": {
			dynamoDB + "UpdateItem", `{"TableName":"p-Ledger","Key":{"pk":{"S":"day#m#XOF"}}}`,
			[]string{"dynamodb:UpdateItem LedgerTable day"},
		},
		"a put of a kind": {
			dynamoDB + "PutItem", `{"TableName":"p-Ledger","Item":{"pk":{"S":"charge#1"},"Key":{"S":"x"}}}`,
			[]string{"dynamodb:PutItem LedgerTable charge"},
		},
		"an index": {
			dynamoDB + "Query", `{"IndexName":"due","TableName":"p-Ledger"}`,
			[]string{"dynamodb:Query LedgerTable/index/due"},
		},
		"an unknown table": {dynamoDB + "PutItem", `{"TableName":"other"}`, []string{"dynamodb:PutItem other"}},
		"no table":         {dynamoDB + "ListTables", `{}`, []string{"dynamodb:ListTables *"}},
		"invalid JSON":     {dynamoDB + "GetItem", `{`, []string{"dynamodb:GetItem *"}},
		"a stream":         {"DynamoDBStreams_20120810.GetRecords", `{}`, []string{"dynamodb:GetRecords *"}},
		"a batch": {
			dynamoDB + "BatchGetItem",
			`{"RequestItems":{"p-Ledger":{"Keys":[{"pk":{"S":"pay#1"}},{"pk":{"S":"pay#2"}},{"pk":{"S":"sms#1"}}]}}}`,
			[]string{"dynamodb:BatchGetItem LedgerTable pay", "dynamodb:BatchGetItem LedgerTable sms"},
		},
		"a batch without keys": {
			dynamoDB + "BatchGetItem", `{"RequestItems":{"p-Ledger":{}}}`, []string{"dynamodb:BatchGetItem *"},
		},
		"a transaction": {
			dynamoDB + "TransactWriteItems",
			`{"TransactItems":[{"Put":{"TableName":"p-Ledger","Item":{"pk":{"S":"a#1"}}}},` +
				`{"ConditionCheck":{"TableName":"other"}}]}`,
			[]string{"dynamodb:ConditionCheckItem other", "dynamodb:PutItem LedgerTable a"},
		},
		"no call": {"", "", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := newRecorder()
			send(t, serve(t, recorder.WrapDynamoDB(streams.NewProxy(parse(t, engine)))), "K1", c.target, c.body)
			var got []string
			for _, call := range recorder.Calls() {
				if call.Function != "ChargeFunction" {
					t.Errorf("the call is one of %s, want ChargeFunction", call.Function)
				}
				got = append(got, strings.TrimSpace(call.Action+" "+call.Resource+" "+call.Kind))
			}
			if difference := cmp.Diff(c.want, got); difference != "" {
				t.Errorf("the permissions differ (-want +got):\n%s", difference)
			}
		})
	}
}

func TestProxyPassesTrafficUnchanged(t *testing.T) {
	sent := `{"TableName":"p-Ledger","x":"` + strings.Repeat("é\\u0000", 50_000) + `"}`
	responseBody := bytes.Repeat([]byte{0, 1, 250}, 100_000)
	sum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(responseBody)), 10)
	engine := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != sent || r.ContentLength != int64(len(sent)) {
			t.Errorf("the body changed: %d bytes, length %d, %v", len(body), r.ContentLength, err)
		}
		if r.Host != "dynamodb.example" || r.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("the proxy changed the host to %s or added X-Forwarded-For: %v", r.Host, r.Header)
		}
		if got := r.Header.Get("Authorization"); got != authorization("RUN") {
			t.Errorf("the authorization is %q, want the run's access key", got)
		}
		if encodings := r.Header.Values("Accept-Encoding"); len(encodings) > 1 {
			t.Errorf("the proxy added an Accept-Encoding: %v", encodings)
		}
		w.Header().Set("X-Amz-Crc32", sum)
		_, _ = w.Write(responseBody)
	}))
	proxy := serve(t, newRecorder().WrapDynamoDB(streams.NewProxy(parse(t, engine))))
	response := send(t, proxy, "K2", "DynamoDB_20120810.PutItem", sent)
	body, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(body, responseBody) || response.Header.Get("X-Amz-Crc32") != sum {
		t.Errorf("the response changed: %d bytes, header %v, %v", len(body), response.Header, err)
	}
}

func TestUnknownAccessKeyIsNotRecorded(t *testing.T) {
	engine := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != authorization("TOOL") {
			t.Errorf("the authorization is %q, want it unchanged", r.Header.Get("Authorization"))
		}
	}))
	recorder := newRecorder()
	proxy := serve(t, recorder.WrapDynamoDB(streams.NewProxy(parse(t, engine))))
	send(t, proxy, "TOOL", "DynamoDB_20120810.Scan", `{"TableName":"p-Ledger"}`)
	if got := recorder.Calls(); len(got) != 0 {
		t.Errorf("the record has the calls %v of an unknown key", got)
	}
}

func TestSecretCallsAreRecordedOnce(t *testing.T) {
	served := 0
	recorder := newRecorder()
	address := serve(t, recorder.WrapSecretsManager(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != `{"SecretId":"local/keys"}` {
			t.Errorf("the body changed to %s", body)
		}
		served++
	})))
	for range 3 {
		send(t, address, "K2", "secretsmanager.GetSecretValue", `{"SecretId":"local/keys"}`)
	}
	want := []awscalls.Call{{Function: "SweepFunction", Action: "secretsmanager:GetSecretValue", Resource: "KeySecret"}}
	if difference := cmp.Diff(want, recorder.Calls()); difference != "" {
		t.Errorf("the record differs (-want +got):\n%s", difference)
	}
	if served != 3 {
		t.Errorf("the service was called %d times, want 3", served)
	}
}

func TestUnreachableServiceDropsConnection(t *testing.T) {
	unreachable := httptest.NewServer(http.NotFoundHandler())
	unreachable.Close()
	address := serve(t, newRecorder().WrapDynamoDB(streams.NewProxy(parse(t, unreachable.URL))))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("the proxy of an unreachable service responded %d", response.StatusCode)
	}
}

func TestSDKThroughProxy(t *testing.T) {
	engine, err := dynoxide.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Stop)
	recorder := newRecorder()
	environment := map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "K1", "AWS_SECRET_ACCESS_KEY": "b",
		"AWS_ENDPOINT_URL_DYNAMODB": serve(t, recorder.WrapDynamoDB(streams.NewProxy(parse(t, engine.Endpoint())))),
	}
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	if err := client.OpenDynamoDB(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = client.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("p-Ledger"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.DynamoDB().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("p-Ledger"),
		Key:       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []awscalls.Call{
		{Function: "ChargeFunction", Action: "dynamodb:CreateTable", Resource: "LedgerTable"},
		{Function: "ChargeFunction", Action: "dynamodb:GetItem", Resource: "LedgerTable", Kind: "a"},
	}
	if difference := cmp.Diff(want, recorder.Calls()); difference != "" {
		t.Errorf("the record differs (-want +got):\n%s", difference)
	}
}
