package local_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobilegateway/internal/local"
)

const root = "../.."

func lookupFrom(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, set := values[name]; return value, set }
}

func TestFromEnvironment(t *testing.T) {
	config, err := local.FromEnvironment(lookupFrom(map[string]string{
		"PORT": "4000", "SPEED": "60", "RESET": "1", "LOCAL_DIR": "/tmp/there", "AWS_ENDPOINT_URL_DYNAMODB": "http://x",
		"POLL_SCHEDULE": "1s,2s", "BASE_URL": "http://not.mine", "GOMAXPROCS": "8",
	}), root)
	if err != nil {
		t.Fatal(err)
	}
	if config.Port != 4000 || config.Speed != 60 || !config.Reset || config.Dir != "/tmp/there" || config.DynamoDB != "http://x" {
		t.Errorf("%+v", config)
	}
	if len(config.EnvOverrides) != 1 || config.EnvOverrides["POLL_SCHEDULE"] != "1s,2s" {
		t.Errorf("overrides %v", config.EnvOverrides)
	}
	plain, err := local.FromEnvironment(lookupFrom(nil), root)
	if err != nil || plain.Port != local.DefaultPort || plain.Speed != 1 || plain.Reset || filepath.Base(plain.Dir) != ".local" {
		t.Errorf("%+v, %v", plain, err)
	}
}

func TestFromEnvironmentErrors(t *testing.T) {
	for _, values := range []map[string]string{
		{"PORT": "x"}, {"PORT": "-1"}, {"PORT": "65534"}, {"SPEED": "0"}, {"SPEED": "1.5"}, {"SPEED": "4000"}, {"RESET": "yes"}, {"SANDBOX_SEED": "x"}, {"SANDBOX_DELAY": "2"},
	} {
		if config, err := local.FromEnvironment(lookupFrom(values), root); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %+v, %v", values, config, err)
		}
	}
}

// start tries to start a run that cannot.
func start(t *testing.T, config local.Config) string {
	t.Helper()
	config.Root = root
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	r, err := local.Start(t.Context(), config)
	if err == nil {
		r.Close()
		t.Fatal("it started")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	return err.Error()
}

func TestPortInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	got := start(t, local.Config{Port: listener.Addr().(*net.TCPAddr).Port})
	if !strings.Contains(got, "is in use") || !strings.Contains(got, "make run PORT=") {
		t.Error(got)
	}
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
	if got := start(t, local.Config{Dir: dir}); !strings.Contains(got, "another run uses") {
		t.Error(got)
	}
	first.Close()
	token := first.Info().AccessToken
	again, err := local.Start(t.Context(), local.Config{Root: abs, Dir: dir, Reset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Info().AccessToken == token {
		t.Error("RESET kept the credentials")
	}
}

func TestDamagedDataDir(t *testing.T) {
	cases := map[string]struct{ path, content, want string }{
		"a damaged file of secrets":    {"data/secrets.json", "{", "RESET=1"},
		"a damaged file of the demo":   {"data/demo.json", "{", "RESET=1"},
		"a damaged inbox":              {"data/inbox.jsonl", "{\n", "RESET=1"},
		"a database that is none":      {"data/ledger.db", "this is no database, and long enough to be looked at", "RESET=1"},
		"a file where a folder is due": {"data", "", "cannot make"},
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
			if got := start(t, local.Config{Dir: dir}); !strings.Contains(got, c.want) {
				t.Error(got)
			}
		})
	}
}

func TestUncreatableDataDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := start(t, local.Config{Dir: path}); !strings.Contains(got, path) || !strings.Contains(got, "set LOCAL_DIR") {
		t.Error(got)
	}
}

func TestDynamoDBUnreachable(t *testing.T) {
	if got := start(t, local.Config{DynamoDB: "http://127.0.0.1:1"}); !strings.Contains(got, "DynamoDB at http://127.0.0.1:1") {
		t.Error(got)
	}
}
