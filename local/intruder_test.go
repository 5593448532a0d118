package local_test

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"mobilegateway/proof/kits/localtest"
)

// otherUser is the user id of an account without rights.
const otherUser = 65534

// startReadable starts a run in a folder that every user may enter, as .local of a checkout is.
func startReadable(t *testing.T) *localtest.Gateway {
	t.Helper()
	parent, err := os.MkdirTemp("", "run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	dir := filepath.Join(parent, "local")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{parent, dir} { // with any umask
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return localtest.Start(t, localtest.Options{Dir: dir})
}

// runFiles returns the files of a run.
func runFiles(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			found[path] = info.Mode().Perm()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// curlAsOtherUser calls curl as another user. It returns the response's status and body.
func curlAsOtherUser(t *testing.T, arguments ...string) (status, body string) {
	t.Helper()
	text := runAsOtherUser(t, "curl", append([]string{"-sS", "-w", "\n%{http_code}"}, arguments...)...)
	end := strings.LastIndexByte(text, '\n')
	return text[end+1:], text[:max(end, 0)]
}

// runAsOtherUser runs a program as another user and returns its output, also that of an error.
func runAsOtherUser(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root on Linux can run a program as another user")
	}
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	output, _ := command.CombinedOutput() // the callers check what it printed
	return string(output)
}

func TestFilesAreTheOwnersOnly(t *testing.T) {
	r := startReadable(t)
	for path, mode := range runFiles(t, r.Dir) {
		want := fs.FileMode(0o600)
		if filepath.Base(path) == "bootstrap" {
			want = 0o700
		}
		if mode != want {
			t.Errorf("%s has the mode %o, want %o", path, mode, want)
		}
	}
}

func TestOtherUserReadsNoFile(t *testing.T) {
	r := startReadable(t)
	if got := runAsOtherUser(t, "cat", "/etc/hostname"); strings.Contains(got, "denied") {
		t.Fatalf("the other user cannot read a public file: %s", got)
	}
	files := runFiles(t, r.Dir)
	if len(files) < 20 {
		t.Fatalf("the run has only %d files", len(files))
	}
	for path := range files {
		got := runAsOtherUser(t, "cat", path)
		if _, err := os.Stat(path); err == nil && !strings.Contains(got, "Permission denied") { // run.json is replaced
			t.Errorf("another user can read %s", path)
		}
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

func TestOtherUserOpensNoService(t *testing.T) {
	r := startReadable(t)
	environment := r.Environment()
	forged := "Authorization: AWS4-HMAC-SHA256 Credential=" + environment["AWS_ACCESS_KEY_ID"] +
		"/20261122/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00"
	for variable, call := range serviceCalls(environment) {
		for _, header := range []string{"Accept: */*", forged} {
			status, body := curlAsOtherUser(t, environment[variable], "-H", "X-Amz-Target: "+call.target, "-H", header,
				"-H", "Content-Type: application/x-amz-json-1.0", "-d", call.body)
			if status != "403" || !strings.Contains(body, "InvalidSignatureException") {
				t.Errorf("%s responds %s to another user with %q: %s", variable, status, header, body)
			}
		}
	}
}

// TestWebPageIsRefused sends what a page of another origin can send, and what it can send by DNS rebinding.
func TestWebPageIsRefused(t *testing.T) {
	r := startReadable(t)
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
