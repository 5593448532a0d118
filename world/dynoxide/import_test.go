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
	source, schema := filepath.Join(folder, "export"), filepath.Join(folder, "schema.json")
	file := filepath.Join(folder, "data.db")
	const described = `{"Table": {"TableName": "Things", "TableStatus": "ACTIVE",
		"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
		"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}}`
	items := filepath.Join(source, "Things", "data", "1.json")
	if err := os.MkdirAll(filepath.Join(source, "Things", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		schema: described,
		items:  `{"Item":{"pk":{"S":"a"}}}` + "\n" + `{"Item":{"pk":{"S":"b"}}}` + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Import(t.Context(), source, schema, file); err != nil {
		t.Fatal(err)
	}
	server := start(t, file)
	scan := strings.NewReader(`{"TableName":"Things","Select":"COUNT"}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.Endpoint(), scan)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.Scan")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 "+
		"Credential=A/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	request.Header.Set("X-Amz-Date", "20260101T000000Z")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if text, err := io.ReadAll(response.Body); err != nil || !strings.Contains(string(text), `"Count":2`) {
		t.Errorf("Scan returned %s, %v, want 2 items", text, err)
	}
	err = Import(t.Context(), source, filepath.Join(folder, "none.json"), file+"2")
	if err == nil || !strings.Contains(err.Error(), "import") {
		t.Errorf("Import without a schema: error = %v", err)
	}
}
