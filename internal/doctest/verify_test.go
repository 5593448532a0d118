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

// sample is one language's program in docs/verify: how it is built, into a folder, and then started.
type sample struct {
	language string
	programs []string
	build    func(to string) []string
	start    func(to string) []string
}

// samples are the languages that docs/merchants.md promises.
var samples = []sample{
	{"go", []string{"go"},
		func(to string) []string { return []string{"go", "build", "-o", filepath.Join(to, "verify"), "./go"} },
		func(to string) []string { return []string{filepath.Join(to, "verify")} }},
	{"javascript", []string{"node"}, nil, func(string) []string { return []string{"node", "javascript/verify.mjs"} }},
	{"python", []string{"python3"}, nil, func(string) []string { return []string{"python3", "-B", "python/verify.py"} }},
	{"java", []string{"java", "javac"},
		func(to string) []string {
			return []string{"javac", "-Xlint:all", "-Werror", "-d", to, "java/Verify.java"}
		},
		func(to string) []string {
			return []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", to, "Verify"}
		}},
	{"php", nil, nil, func(string) []string { return []string{"php/verify.php"} }}, // see php_test.go
}

// delivery is what reaches a merchant's server.
type delivery struct {
	secret, id, timestamp, signature, body string
}

// deliveries are genuine notifications, signed by the gateway's own code, and forged ones, by what is forged.
func deliveries() (genuine, forged map[string]delivery) {
	secret := webhook.DeriveSecret(keyring.Key{Number: 1, Value: bytes.Repeat([]byte{7}, 32)}, "merchant", 1)
	old := webhook.DeriveSecret(keyring.Key{Number: 1, Value: bytes.Repeat([]byte{7}, 32)}, "merchant", 2)
	const body = `{"meta":{"type":"payment-notif","channel":"web"},"status":"successful","amount":"1500","order-id":"DemoShop_1","state":"é<&>%20"}` + "\n"
	send := func(at time.Time, change func(*delivery), secrets ...webhook.Secret) delivery {
		d := delivery{secret.Text(), "msg_1", strconv.FormatInt(at.Unix(), 10), webhook.Sign(secrets, "msg_1", at, []byte(body)), body}
		if change != nil {
			change(&d)
		}
		return d
	}
	now := time.Now()
	genuine = map[string]delivery{
		"genuine":             send(now, nil, secret),
		"during a rotation":   send(now, nil, old, secret),
		"four minutes old":    send(now.Add(-4*time.Minute), nil, secret),
		"with other versions": send(now, func(d *delivery) { d.signature = "v2,AAAA v1a,BBBB " + d.signature }, secret),
	}
	forged = map[string]delivery{
		"another amount":     send(now, func(d *delivery) { d.body = strings.Replace(d.body, "1500", "9500", 1) }, secret),
		"a line end less":    send(now, func(d *delivery) { d.body = strings.TrimSpace(d.body) }, secret),
		"another id":         send(now, func(d *delivery) { d.id = "msg_2" }, secret),
		"another time":       send(now, func(d *delivery) { d.timestamp = strconv.FormatInt(now.Unix()-1, 10) }, secret),
		"ten minutes old":    send(now.Add(-10*time.Minute), nil, secret),
		"ten minutes ahead":  send(now.Add(10*time.Minute), nil, secret),
		"no time":            send(now, func(d *delivery) { d.timestamp = "" }, secret),
		"another's secret":   send(now, nil, old),
		"no signature":       send(now, func(d *delivery) { d.signature = "" }, secret),
		"an empty signature": send(now, func(d *delivery) { d.signature = "v1," }, secret),
		"half a signature":   send(now, func(d *delivery) { d.signature = d.signature[:20] }, secret),
		"no secret":          send(now, func(d *delivery) { d.secret = "" }, webhook.Secret{}),
	}
	return genuine, forged
}

// TestSamples runs every sample against genuine and forged notifications. A language whose tools are not here fails in CI.
func TestSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs in five languages")
	}
	genuine, forged := deliveries()
	for _, s := range samples {
		t.Run(s.language, func(t *testing.T) {
			t.Parallel()
			need(t, s.programs...)
			if s.language == "php" {
				s.start = startPHP(t)
			}
			to := t.TempDir()
			if s.build != nil {
				output, err := inVerify(t, s.build(to)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, output)
				}
			}
			usage, err := inVerify(t, s.start(to)...).CombinedOutput()
			if err == nil || strings.Count(string(usage), "\n") != 1 || !strings.Contains(string(usage), " ID TIMESTAMP SIGNATURE < BODY") {
				t.Errorf("without arguments: %v %q", err, usage)
			}
			for name, d := range genuine {
				if output, err := s.judge(t, to, d); err != nil || output != "verified" {
					t.Errorf("%s: %v %q", name, err, output)
				}
			}
			for name, d := range forged {
				output, err := s.judge(t, to, d)
				if err == nil || strings.Contains(output, "verified") || output == "" {
					t.Errorf("%s: %v %q", name, err, output)
				}
				if err != nil && (strings.Contains(output, "Traceback") || strings.Contains(output, "Exception") || strings.Contains(output, "Fatal error")) {
					t.Errorf("%s is no refusal but a crash: %s", name, output)
				}
			}
		})
	}
}

// startPHP starts the sample with the PHP that is to be had. Without one it fails in CI, as need does.
func startPHP(t *testing.T) func(string) []string {
	t.Helper()
	words, err := php()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return func(string) []string { return append(slices.Clone(words), "php/verify.php") }
}

// judge starts a sample with a delivery and gives what it says.
func (s sample) judge(t *testing.T, to string, d delivery) (string, error) {
	t.Helper()
	command := inVerify(t, append(s.start(to), d.id, d.timestamp, d.signature)...)
	command.Env = append(os.Environ(), "WEBHOOK_SECRET="+d.secret)
	command.Stdin = strings.NewReader(d.body)
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// inVerify is a command in docs/verify.
func inVerify(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), words[0], words[1:]...)
	command.Dir = filepath.Join(top, "docs", "verify")
	return command
}

// TestEverySampleIsPromised compares the folders with the languages that are run, and with the merchants' page.
func TestEverySampleIsPromised(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(top, "docs", "verify"))
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
		for _, l := range one(t, "docs/merchants.md").links {
			if strings.HasPrefix(l.text, "verify/"+s.language+"/") {
				linked++
				break
			}
		}
	}
	if len(folders) != len(languages) || linked != len(languages) {
		t.Errorf("folders %v, languages that are run %v, %d of them linked", folders, languages, linked)
	}
}
