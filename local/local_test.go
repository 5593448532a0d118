package local_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/local"
)

const root = ".."

func lookupFrom(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, set := values[name]; return value, set }
}

func TestFromEnvironment(t *testing.T) {
	config, err := local.FromEnvironment(lookupFrom(map[string]string{
		"PORT": "4000", "SPEED": "60", "RESET": "1", "STANDINS": "1", "LOCAL_DIR": "/tmp/there",
		"AWS_ENDPOINT_URL_DYNAMODB": "http://x", "POLL_SCHEDULE": "1s,2s", "BASE_URL": "http://not.mine",
		"GOMAXPROCS": "8",
	}), root)
	if err != nil {
		t.Fatal(err)
	}
	want := local.Config{
		Root: root, Port: 4000, Speed: 60, Reset: true, Stubs: true, Dir: "/tmp/there", DynamoDB: "http://x",
		EnvOverrides: map[string]string{"POLL_SCHEDULE": "1s,2s"},
	}
	if difference := cmp.Diff(want, config); difference != "" {
		t.Errorf("the settings differ (-want +got):\n%s", difference)
	}
	plain, err := local.FromEnvironment(lookupFrom(nil), root)
	if err != nil {
		t.Fatal(err)
	}
	want = local.Config{
		Root: root, Port: local.DefaultPort, Speed: 1, Dir: filepath.Join(root, ".local"),
		EnvOverrides: map[string]string{},
	}
	if difference := cmp.Diff(want, plain); difference != "" {
		t.Errorf("the defaults differ (-want +got):\n%s", difference)
	}
}

func TestFromEnvironmentErrors(t *testing.T) {
	for _, values := range []map[string]string{
		{"PORT": "x"}, {"PORT": "-1"}, {"PORT": "65534"}, {"SPEED": "0"}, {"SPEED": "1.5"}, {"SPEED": "4000"},
		{"RESET": "yes"}, {"STANDINS": "yes"}, {"SANDBOX_SEED": "x"}, {"SANDBOX_DELAY": "2"},
	} {
		_, err := local.FromEnvironment(lookupFrom(values), root)
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("for %v the error is %v, want one line", values, err)
		}
	}
}

// wantStartError tries to start a run and checks that its error is one line with each of the texts.
func wantStartError(t *testing.T, config local.Config, texts ...string) {
	t.Helper()
	config.Root = root
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	r, err := local.Start(t.Context(), config)
	if err == nil {
		r.Close()
		t.Fatal("the run started, want an error")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is more than one line: %v", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %q, want %q in it", err, text)
		}
	}
}

func TestPortInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	wantStartError(t, local.Config{Port: port}, "is in use", "make run PORT=")
}

func TestDataDirLocked(t *testing.T) {
	dir := t.TempDir()
	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	first, err := local.Start(t.Context(), local.Config{Root: abs, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	wantStartError(t, local.Config{Dir: dir}, "another run uses", "stop it")
	first.Close()
	token := first.Info().AccessToken
	again, err := local.Start(t.Context(), local.Config{Root: abs, Dir: dir, Reset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Info().AccessToken == token {
		t.Error("RESET did not replace the credentials")
	}
}

func TestDamagedDataDir(t *testing.T) {
	cases := map[string]struct{ path, content, want string }{
		"a damaged file of secrets":   {"data/secrets.json", "{", "RESET=1"},
		"a damaged file of the demo":  {"data/demo.json", "{", "RESET=1"},
		"a damaged inbox":             {"data/inbox.jsonl", "{\n", "RESET=1"},
		"a damaged database":          {"data/ledger.db", "a text that is long enough for a header", "RESET=1"},
		"a file in place of a folder": {"data", "", "set LOCAL_DIR"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			wantStartError(t, local.Config{Dir: dir}, c.want)
		})
	}
}

func TestUncreatableDataDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantStartError(t, local.Config{Dir: path}, path, "set LOCAL_DIR")
}

func TestDynamoDBUnreachable(t *testing.T) {
	wantStartError(t, local.Config{DynamoDB: "http://127.0.0.1:1"}, "DynamoDB at http://127.0.0.1:1")
}
