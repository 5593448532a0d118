package local_test

import (
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"mobilegateway/proof/kits/localtest"
)

func TestFilesAreTheOwnersOnly(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	found := 0
	err := filepath.WalkDir(r.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found++
		want := fs.FileMode(0o600)
		if entry.Name() == "bootstrap" {
			want = 0o700
		}
		if mode := info.Mode().Perm(); mode != want {
			t.Errorf("%s has the mode %o, want %o", path, mode, want)
		}
		return nil
	})
	if err != nil || found < 20 {
		t.Errorf("the run has only %d files: %v", found, err)
	}
}

// serviceCalls are calls that read a secret and a table, by the variable with the service's address.
func serviceCalls(environment map[string]string) map[string]struct{ target, body string } {
	return map[string]struct{ target, body string }{
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": {
			"secretsmanager.GetSecretValue", `{"SecretId":"` + environment["TOKEN_KEY_SECRET"] + `"}`,
		},
		"AWS_ENDPOINT_URL_DYNAMODB": {
			"DynamoDB_20120810.Scan", `{"TableName":"` + environment["MERCHANT_TABLE"] + `"}`,
		},
	}
}

// TestOtherUserOpensNoService: another user reaches the ports, but does not know the key in aws.env.
func TestOtherUserOpensNoService(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	environment := r.Environment()
	forged := "AWS4-HMAC-SHA256 Credential=" + environment["AWS_ACCESS_KEY_ID"] +
		"/20261122/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00"
	for variable, call := range serviceCalls(environment) {
		for _, header := range [][]string{nil, {forged}} {
			status, _, body := localtest.Send(t, "POST", environment[variable], call.body, http.Header{
				"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {call.target}, "Authorization": header,
			})
			if status != http.StatusForbidden || !strings.Contains(body, "InvalidSignatureException") {
				t.Errorf("%s responds %d to another user with %q: %s", variable, status, header, body)
			}
		}
	}
}

// TestWebPageIsRefused sends what a page of another origin can send, and what it can send by DNS rebinding.
func TestWebPageIsRefused(t *testing.T) {
	r := localtest.Start(t, localtest.Options{})
	info, environment := r.Info(), r.Environment()
	ports := map[string]string{
		"API": info.BaseURL + "/mobilemoney/v1", "sandbox": info.SandboxURL + "/sandbox/v1/tests",
		"inbox": info.InboxURL + "/notifications/DemoShop", "secrets": environment["AWS_ENDPOINT_URL_SECRETS_MANAGER"],
		"tables": environment["AWS_ENDPOINT_URL_DYNAMODB"],
	}
	for name, address := range ports {
		page := http.Header{
			"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}, "Content-Type": {"text/plain"},
		}
		if status, _, body := localtest.Send(t, "POST", address, "{}", page); status != http.StatusForbidden {
			t.Errorf("the port of the %s responds %d to a web page: %s", name, status, body)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "evil.example"
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusForbidden || !strings.Contains(string(body), "Host") {
			t.Errorf("the port of the %s responds %d under another name: %s, %v", name, response.StatusCode, body, err)
		}
	}
	link := http.Header{"Sec-Fetch-Site": {"same-site"}}
	if status, _, _ := localtest.Send(t, "GET", info.InboxURL+"/", "", link); status != http.StatusOK {
		t.Errorf("a link from another port to the inbox responds %d, want 200", status)
	}
	status, _, _ := localtest.Send(t, "POST", info.SandboxURL+"/sandbox/v1/tests", "", nil)
	if status != http.StatusOK {
		t.Errorf("a program without credentials gets %d from the control port, want 200", status)
	}
}
