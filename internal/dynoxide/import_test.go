package dynoxide

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImport(t *testing.T) {
	folder := t.TempDir()
	source, schema, file := filepath.Join(folder, "export"), filepath.Join(folder, "schema.json"), filepath.Join(folder, "data.db")
	described := `{"Table":{"TableName":"Things","TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}}`
	if err := os.MkdirAll(filepath.Join(source, "Things", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		schema: described,
		filepath.Join(source, "Things", "data", "1.json"): `{"Item":{"pk":{"S":"a"}}}` + "\n" + `{"Item":{"pk":{"S":"b"}}}` + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Import(t.Context(), source, schema, file); err != nil {
		t.Fatal(err)
	}
	server, err := Start(t.Context(), file, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.Endpoint(), strings.NewReader(`{"TableName":"Things","Select":"COUNT"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.Scan")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	request.Header.Set("X-Amz-Date", "20260101T000000Z")
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), `"Count":2`) {
		t.Errorf("the table says %s, %v", text, err)
	}
	if err := Import(t.Context(), source, filepath.Join(folder, "none.json"), file+"2"); err == nil || !strings.Contains(err.Error(), "import") {
		t.Errorf("without a schema: %v", err)
	}
}
