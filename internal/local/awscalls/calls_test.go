package awscalls_test

import (
	"bytes"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/internal/dynoxide"
	"mobilegateway/internal/local/awscalls"
	"mobilegateway/shared/awsclient"
)

// authorization is the header of a request that a key signed.
func authorization(key string) string {
	return "AWS4-HMAC-SHA256 Credential=" + key + "/20261121/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00"
}

func newRecorder(onChange func()) *awscalls.Recorder {
	return awscalls.New(map[string]string{"K1": "ChargeFunction", "K2": "SweepFunction"},
		map[string]string{"p-Ledger": "LedgerTable", "local/keys": "KeySecret"}, "RUN", onChange)
}

// send posts a call and gives the answer.
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
	engine := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	cases := map[string]struct {
		target, body string
		want         []string
	}{
		"an item":          {"DynamoDB_20120810.GetItem", `{"TableName":"p-Ledger","Key":{}}`, []string{"dynamodb:GetItem LedgerTable"}},
		"an index":         {"DynamoDB_20120810.Query", `{"IndexName":"due","TableName":"p-Ledger"}`, []string{"dynamodb:Query LedgerTable/index/due"}},
		"an unknown table": {"DynamoDB_20120810.PutItem", `{"TableName":"other"}`, []string{"dynamodb:PutItem other"}},
		"no table":         {"DynamoDB_20120810.ListTables", `{}`, []string{"dynamodb:ListTables *"}},
		"no JSON":          {"DynamoDB_20120810.GetItem", `{`, []string{"dynamodb:GetItem *"}},
		"a stream":         {"DynamoDBStreams_20120810.GetRecords", `{}`, []string{"dynamodb:GetRecords *"}},
		"a batch": {
			"DynamoDB_20120810.BatchGetItem", `{"RequestItems":{"p-Ledger":{},"other":{}}}`,
			[]string{"dynamodb:BatchGetItem LedgerTable", "dynamodb:BatchGetItem other"},
		},
		"a transaction": {
			"DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"p-Ledger"}},{"ConditionCheck":{"TableName":"other"}}]}`,
			[]string{"dynamodb:ConditionCheckItem other", "dynamodb:PutItem LedgerTable"},
		},
		"no call": {"", "", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := newRecorder(func() {})
			send(t, serve(t, recorder.ProxyDynamoDB(parse(t, engine))), "K1", c.target, c.body)
			var got []string
			for _, call := range recorder.Calls() {
				if call.Function != "ChargeFunction" {
					t.Errorf("%+v", call)
				}
				got = append(got, call.Action+" "+call.Resource)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
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
			t.Errorf("the body is another: %d bytes, length %d, %v", len(body), r.ContentLength, err)
		}
		if r.Host != "dynamodb.example" || r.Header.Get("Authorization") != authorization("RUN") || r.Header.Get("X-Forwarded-For") != "" {
			t.Errorf("host %s, header %v", r.Host, r.Header)
		}
		if encodings := r.Header.Values("Accept-Encoding"); len(encodings) > 1 {
			t.Errorf("Accept-Encoding %v", encodings)
		}
		w.Header().Set("X-Amz-Crc32", sum)
		_, _ = w.Write(responseBody)
	}))
	response := send(t, serve(t, newRecorder(func() {}).ProxyDynamoDB(parse(t, engine))), "K2", "DynamoDB_20120810.PutItem", sent)
	body, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(body, responseBody) || response.Header.Get("X-Amz-Crc32") != sum {
		t.Errorf("%d bytes, %v, %v", len(body), response.Header, err)
	}
}

func TestUnknownAccessKeyIsNotRecorded(t *testing.T) {
	engine := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != authorization("TOOL") {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
	}))
	recorder := newRecorder(func() { t.Error("noted") })
	send(t, serve(t, recorder.ProxyDynamoDB(parse(t, engine))), "TOOL", "DynamoDB_20120810.Scan", `{"TableName":"p-Ledger"}`)
	if got := recorder.Calls(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestSecretCallsAreRecordedOnce(t *testing.T) {
	onChange, served := 0, 0
	recorder := newRecorder(func() { onChange++ })
	address := serve(t, recorder.WrapSecretsManager(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != `{"SecretId":"local/keys"}` {
			t.Errorf("body %s", body)
		}
		served++
	})))
	for range 3 {
		send(t, address, "K2", "secretsmanager.GetSecretValue", `{"SecretId":"local/keys"}`)
	}
	want := []awscalls.Call{{Function: "SweepFunction", Action: "secretsmanager:GetSecretValue", Resource: "KeySecret"}}
	if !slices.Equal(recorder.Calls(), want) || onChange != 1 || served != 3 {
		t.Errorf("%v, noted %d times, served %d times", recorder.Calls(), onChange, served)
	}
	path := filepath.Join(t.TempDir(), awscalls.FileName)
	if err := recorder.Write(path); err != nil {
		t.Fatal(err)
	}
	if read, err := awscalls.Read(path); err != nil || !slices.Equal(read, want) {
		t.Errorf("%v, %v", read, err)
	}
}

func TestUnreachableServiceDropsConnection(t *testing.T) {
	unreachable := httptest.NewServer(http.NotFoundHandler())
	unreachable.Close()
	address := serve(t, newRecorder(func() {}).ProxyDynamoDB(parse(t, unreachable.URL)))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("it answered %d", response.StatusCode)
	}
}

func TestSDKThroughProxy(t *testing.T) {
	engine, err := dynoxide.Start(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Stop)
	recorder := newRecorder(func() {})
	environment := map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "K1", "AWS_SECRET_ACCESS_KEY": "b",
		"AWS_ENDPOINT_URL_DYNAMODB": serve(t, recorder.ProxyDynamoDB(parse(t, engine.Endpoint()))),
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
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.DynamoDB().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("p-Ledger"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := recorder.Calls(); len(got) != 2 || got[1].Action != "dynamodb:GetItem" || got[1].Resource != "LedgerTable" {
		t.Errorf("%v", got)
	}
}
