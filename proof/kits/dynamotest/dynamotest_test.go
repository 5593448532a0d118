package dynamotest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mobilegateway/proof/kits/dynamotest"
)

// TestEndpoint: each test has its own access key at the reference.
func TestEndpoint(t *testing.T) {
	const scope = "20260101/eu-west-1/dynamodb/aws4_request, Signature=0"
	seen := map[string]bool{}
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key, rest, _ := strings.Cut(r.Header.Get("Authorization"), "/")
		if rest != scope {
			t.Errorf("the rest of the header is %q, want it unchanged", rest)
		}
		seen[key] = true
	}))
	t.Cleanup(engine.Close)
	t.Setenv(dynamotest.ReferenceVariable, engine.URL)
	for range 2 {
		request, err := http.NewRequest(http.MethodPost, dynamotest.StartEndpoint(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/"+scope)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if len(seen) != 2 || seen["AWS4-HMAC-SHA256 Credential=local"] {
		t.Errorf("the access keys are %v, want two other than the client's", seen)
	}
}
