package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/shared/awsclient"
)

const secretKey = "the-secret-of-this-run"

// signedRequest returns a request as a client signs it. change alters it before the signature.
func signedRequest(t *testing.T, key, body string, change func(*http.Request)) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Host = "127.0.0.1:8000"
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.Scan")
	if change != nil {
		change(r)
	}
	sum := sha256.Sum256([]byte(body))
	keys := aws.Credentials{AccessKeyID: "ANY", SecretAccessKey: key}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	err := v4.NewSigner().SignHTTP(t.Context(), keys, r, hex.EncodeToString(sum[:]), "dynamodb", "eu-west-1", at)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequire(t *testing.T) {
	const body = `{"TableName":"Ledger"}`
	withoutLength := func(r *http.Request) { r.ContentLength = 0 }
	cases := map[string]struct {
		key    string
		before func(*http.Request)
		after  func(*http.Request)
		want   int
	}{
		"signed":                     {key: secretKey, want: 200},
		"signed without the length":  {key: secretKey, before: withoutLength, want: 200},
		"signed with another secret": {key: "local", want: 403},
		"not signed":                 {secretKey, nil, func(r *http.Request) { r.Header.Del("Authorization") }, 403},
		"a bearer token": {secretKey, nil, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+secretKey)
		}, 403},
		"another body": {secretKey, nil, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(body, "Ledger", "Secret", 1)))
		}, 403},
		"another operation": {secretKey, nil, func(r *http.Request) {
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810.DeleteTable")
		}, 403},
		"another path":  {secretKey, nil, func(r *http.Request) { r.URL = &url.URL{Path: "/other"} }, 403},
		"another query": {secretKey, nil, func(r *http.Request) { r.URL = &url.URL{Path: "/", RawQuery: "a=b"} }, 403},
		"another host":  {secretKey, nil, func(r *http.Request) { r.Host = "127.0.0.1:9000" }, 403},
		"another date": {secretKey, nil, func(r *http.Request) {
			r.Header.Set("X-Amz-Date", "20261123T100000Z")
		}, 403},
		"no date": {secretKey, nil, func(r *http.Request) { r.Header.Del("X-Amz-Date") }, 403},
		"no signature": {secretKey, nil, func(r *http.Request) {
			head, _, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
			r.Header.Set("Authorization", head+"Signature=")
		}, 403},
		"signed headers removed": {secretKey, nil, func(r *http.Request) {
			before, rest, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
			_, after, _ := strings.Cut(rest, ",")
			r.Header.Set("Authorization", before+"SignedHeaders=host,"+after)
		}, 403},
		"short scope": {secretKey, nil, func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=A/B, SignedHeaders=host, Signature=00")
		}, 403},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got string
			handler := Require(secretKey, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				got = string(text)
			}))
			request := signedRequest(t, c.key, body, c.before)
			if c.after != nil {
				c.after(request)
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if recorder.Code != c.want {
				t.Errorf("status %d, want %d: %s", recorder.Code, c.want, recorder.Body)
			}
			if passed := got == body; passed != (c.want == http.StatusOK) {
				t.Errorf("the handler got %q", got)
			}
			if strings.Contains(recorder.Body.String(), secretKey) {
				t.Error("the refusal contains the secret")
			}
		})
	}
}

// TestSDKIsAccepted calls through the functions' own client, which signs more headers.
func TestSDKIsAccepted(t *testing.T) {
	served := 0
	server := httptest.NewServer(Require(secretKey, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served++
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, `{"TableNames":[]}`)
	})))
	defer server.Close()
	for key, want := range map[string]int{secretKey: 1, "local": 0} {
		served = 0
		environment := map[string]string{
			"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": key,
			"AWS_ENDPOINT_URL_DYNAMODB": server.URL,
		}
		client, err := awsclient.New(func(name string) string { return environment[name] })
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.DynamoDB().ListTables(t.Context(), &dynamodb.ListTablesInput{})
		if served != want || (err == nil) != (want == 1) {
			t.Errorf("with the secret %q the service got %d calls, want %d: %v", key, served, want, err)
		}
	}
}
