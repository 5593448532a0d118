package doctest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/webhook"
)

// verifySample is the program of one language in docs/verify, with the commands that build and start it in a folder.
type verifySample struct {
	language     string
	programs     []string
	buildCommand func(to string) []string
	startCommand func(to string) []string
}

// samples are the languages of docs/merchants.md.
var samples = []verifySample{
	{"go", []string{"go"},
		func(to string) []string { return []string{"go", "build", "-o", filepath.Join(to, "verify"), "./go"} },
		func(to string) []string { return []string{filepath.Join(to, "verify")} }},
	{"javascript", []string{"node"}, nil, func(string) []string { return []string{"node", "javascript/verify.mjs"} }},
	{"python", []string{"python3"}, nil, func(string) []string {
		return []string{"python3", "-B",
			"python/verify.py"}
	}},
	{"java", []string{"java", "javac"},
		func(to string) []string {
			return []string{"javac", "-Xlint:all", "-Werror", "-d", to, "java/Verify.java"}
		},
		func(to string) []string {
			return []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", to, "Verify"}
		}},
	{"php", nil, nil, func(string) []string { return []string{"php/verify.php"} }}, // see php_test.go
}

// signedRequest is a delivery to a merchant's server.
type signedRequest struct {
	secret, id, timestamp, signature, body string
}

// deliveries returns notifications signed by the gateway's own code, and forged ones, by name.
func deliveries() (valid, forged map[string]signedRequest) {
	secret := webhook.DeriveSecret(keyring.Key{Number: 1, Value: bytes.Repeat([]byte{7}, 32)}, "merchant", 1)
	old := webhook.DeriveSecret(keyring.Key{Number: 1, Value: bytes.Repeat([]byte{7}, 32)}, "merchant", 2)
	const body = `{"meta":{"type":"payment-notif","channel":"web"},"status":"successful","amount":"1500",` +
		`"order-id":"DemoShop_1","state":"é<&>%20"}` + "\n"
	send := func(at time.Time, change func(*signedRequest), secrets ...webhook.Secret) signedRequest {
		d := signedRequest{secret.Text(), "msg_1", strconv.FormatInt(at.Unix(), 10), webhook.Sign(secrets, "msg_1", at,
			[]byte(body)), body}
		if change != nil {
			change(&d)
		}
		return d
	}
	now := time.Now()
	valid = map[string]signedRequest{
		"signed":            send(now, nil, secret),
		"during a rotation": send(now, nil, old, secret),
		"four minutes old":  send(now.Add(-4*time.Minute), nil, secret),
		"with other versions": send(now, func(d *signedRequest) { d.signature = "v2,AAAA v1a,BBBB " + d.signature },
			secret),
	}
	forged = map[string]signedRequest{
		"another amount": send(now, func(d *signedRequest) { d.body = strings.Replace(d.body, "1500", "9500", 1) },
			secret),
		"no final line end": send(now, func(d *signedRequest) { d.body = strings.TrimSpace(d.body) }, secret),
		"another id":        send(now, func(d *signedRequest) { d.id = "msg_2" }, secret),
		"another time": send(now, func(d *signedRequest) { d.timestamp = strconv.FormatInt(now.Unix()-1, 10) },
			secret),
		"ten minutes old":    send(now.Add(-10*time.Minute), nil, secret),
		"ten minutes ahead":  send(now.Add(10*time.Minute), nil, secret),
		"no time":            send(now, func(d *signedRequest) { d.timestamp = "" }, secret),
		"another secret":     send(now, nil, old),
		"no signature":       send(now, func(d *signedRequest) { d.signature = "" }, secret),
		"an empty signature": send(now, func(d *signedRequest) { d.signature = "v1," }, secret),
		"half a signature":   send(now, func(d *signedRequest) { d.signature = d.signature[:20] }, secret),
		"no secret":          send(now, func(d *signedRequest) { d.secret = "" }, webhook.Secret{}),
	}
	return valid, forged
}

// TestSamples runs every sample against valid and forged notifications. In CI all languages must be installed.
func TestSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs in five languages")
	}
	valid, forged := deliveries()
	for _, s := range samples {
		t.Run(s.language, func(t *testing.T) {
			t.Parallel()
			requireTool(t, s.programs...)
			if s.language == "php" {
				s.startCommand = startPHP(t)
			}
			to := t.TempDir()
			if s.buildCommand != nil {
				output, err := verifyCommand(t, s.buildCommand(to)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, output)
				}
			}
			usage, err := verifyCommand(t, s.startCommand(to)...).CombinedOutput()
			if err == nil || strings.Count(string(usage), "\n") != 1 || !strings.Contains(string(usage),
				" ID TIMESTAMP SIGNATURE < BODY") {
				t.Errorf("without arguments it ended with %v and printed %q, want one line of usage", err, usage)
			}
			for name, d := range valid {
				if output, err := s.verify(t, to, d); err != nil || output != "verified" {
					t.Errorf("%s: the sample ended with %v and printed %q", name, err, output)
				}
			}
			for name, d := range forged {
				output, err := s.verify(t, to, d)
				if err == nil || strings.Contains(output, "verified") || output == "" {
					t.Errorf("%s: the sample ended with %v and printed %q", name, err, output)
				}
				if err != nil && (strings.Contains(output, "Traceback") || strings.Contains(output, "Exception") ||
					strings.Contains(output, "Fatal error")) {
					t.Errorf("%s: the sample crashed: %s", name, output)
				}
			}
		})
	}
}

// startPHP returns the command of the PHP sample. Without PHP the test fails in CI and is skipped elsewhere.
func startPHP(t *testing.T) func(string) []string {
	t.Helper()
	arguments, err := php()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return func(string) []string { return append(slices.Clone(arguments), "php/verify.php") }
}

// verify runs a sample with a delivery and returns its output.
func (s verifySample) verify(t *testing.T, to string, d signedRequest) (string, error) {
	t.Helper()
	command := verifyCommand(t, append(s.startCommand(to), d.id, d.timestamp, d.signature)...)
	command.Env = append(os.Environ(), "WEBHOOK_SECRET="+d.secret)
	command.Stdin = strings.NewReader(d.body)
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// verifyCommand returns a command in docs/verify.
func verifyCommand(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)
	command.Dir = filepath.Join(rootDir, "docs", "verify")
	return command
}

// TestSamplesAreDocumented compares the folders of docs/verify with the tested languages and the links of the
// merchants' page.
func TestSamplesAreDocumented(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(rootDir, "docs", "verify"))
	if err != nil {
		t.Fatal(err)
	}
	var folders, languages []string
	for _, entry := range entries {
		folders = append(folders, entry.Name())
	}
	linked := 0
	for _, s := range samples {
		languages = append(languages, s.language)
		for _, l := range findPage(t, "docs/merchants.md").links {
			if strings.HasPrefix(l.text, "verify/"+s.language+"/") {
				linked++
				break
			}
		}
	}
	if len(folders) != len(languages) || linked != len(languages) {
		t.Errorf("folders %v, tested languages %v, %d of them linked", folders, languages, linked)
	}
}
