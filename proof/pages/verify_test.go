package pages

import (
	"bytes"
	"fmt"
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

// verifySample is the program of one language in docs/verify, with the commands that build and start it. OUT in them is
// the folder of what they build.
type verifySample struct {
	language     string
	programs     []string
	buildCommand string
	startCommand string
}

// samples are the languages of docs/merchants.md.
var samples = []verifySample{
	{"go", []string{"go"}, "go build -o OUT/verify ./go", "OUT/verify"},
	{"javascript", []string{"node"}, "", "node javascript/verify.mjs"},
	{"python", []string{"python3"}, "", "python3 -B python/verify.py"},
	{"java", []string{"java", "javac"}, "javac -Xlint:all -Werror -d OUT java/Verify.java",
		"java -Xshare:auto -XX:TieredStopAtLevel=1 -cp OUT Verify"},
	{"php", nil, "", "php/verify.php"}, // see php_test.go
}

// signedRequest is a delivery to a merchant's server.
type signedRequest struct {
	secret, id, timestamp, signature, body string
}

// The errors that the samples of all languages print.
const (
	wrongSecret    = "the secret is not whsec_ and base64"
	wrongHeader    = "a header is missing or malformed"
	wrongTime      = "the timestamp is not within 5 minutes"
	wrongSignature = "no signature matches"
)

// refusedRequest is a delivery that each sample refuses with the same error.
type refusedRequest struct {
	signedRequest
	want string
}

// deliveries returns notifications signed by the gateway's own code, and forged ones, by name.
func deliveries() (valid map[string]signedRequest, forged map[string]refusedRequest) {
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
	refuse := func(want string, at time.Time, change func(*signedRequest), secrets ...webhook.Secret) refusedRequest {
		return refusedRequest{send(at, change, secrets...), want}
	}
	malformed := func(change func(*signedRequest)) refusedRequest { return refuse(wrongHeader, now, change, secret) }
	forged = map[string]refusedRequest{
		"another amount": refuse(wrongSignature, now, func(d *signedRequest) {
			d.body = strings.Replace(d.body, "1500", "9500", 1)
		}, secret),
		"no final line end": refuse(wrongSignature, now, func(d *signedRequest) {
			d.body = strings.TrimSpace(d.body)
		}, secret),
		"another id": refuse(wrongSignature, now, func(d *signedRequest) { d.id = "msg_2" }, secret),
		"another time": refuse(wrongSignature, now, func(d *signedRequest) {
			d.timestamp = strconv.FormatInt(now.Unix()-1, 10)
		}, secret),
		"ten minutes old":   refuse(wrongTime, now.Add(-10*time.Minute), nil, secret),
		"ten minutes ahead": refuse(wrongTime, now.Add(10*time.Minute), nil, secret),
		"another secret":    refuse(wrongSignature, now, nil, old),
		"no secret":         refuse(wrongSecret, now, func(d *signedRequest) { d.secret = "" }, webhook.Secret{}),
		"a broken secret":   refuse(wrongSecret, now, func(d *signedRequest) { d.secret = "whsec_!!!!" }, secret),
		"no headers": malformed(func(d *signedRequest) {
			d.id, d.timestamp, d.signature = "", "", ""
		}),
	}
	for name, header := range map[string]func(*signedRequest) *string{
		"webhook-id":        func(d *signedRequest) *string { return &d.id },
		"webhook-timestamp": func(d *signedRequest) *string { return &d.timestamp },
		"webhook-signature": func(d *signedRequest) *string { return &d.signature },
	} {
		for value, want := range absurdHeaders()[name] {
			forged[fmt.Sprintf("%s %.40q", name, value)] = refuse(want, now, func(d *signedRequest) {
				*header(d) = strings.ReplaceAll(value, "REAL", *header(d))
			}, secret)
		}
	}
	return valid, forged
}

// absurdHeaders returns values that a header may have, with the error of each; REAL is the signed value.
func absurdHeaders() map[string]map[string]string {
	return map[string]map[string]string{
		"webhook-id": {"": wrongHeader, " ": wrongHeader, "REAL REAL": wrongHeader, "é": wrongHeader,
			"a\tb": wrongHeader, strings.Repeat("x", 257): wrongHeader, "REAL, REAL": wrongHeader,
			strings.Repeat("x", 256): wrongSignature},
		"webhook-timestamp": {"": wrongHeader, " REAL": wrongHeader, "+REAL": wrongHeader,
			"REAL.0": wrongHeader, "0x5f": wrongHeader, "NaN": wrongHeader,
			"２": wrongHeader, "REAL, REAL": wrongHeader,
			"1_700_000_000": wrongHeader, "2026-11-22T10:00:00Z": wrongHeader,
			strings.Repeat("9", 16): wrongHeader, strings.Repeat("9", 400): wrongHeader,
			strings.Repeat("9", 15): wrongTime, "REAL000": wrongTime, "0": wrongTime, "0REAL": wrongSignature},
		"webhook-signature": {"": wrongHeader, " ": wrongSignature, "v1,": wrongSignature,
			"REALREAL": wrongSignature, "é": wrongSignature, "REAL,REAL": wrongSignature,
			"v1 REAL=": wrongSignature, "\tREAL": wrongSignature, strings.Repeat("v1, ", 500): wrongSignature},
	}
}

// TestSamples runs every sample against valid and forged notifications. In CI all languages must be installed.
func TestSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs in five languages")
	}
	t.Parallel() // beside TestLocalSamples, which waits
	for _, s := range samples {
		t.Run(s.language, func(t *testing.T) {
			t.Parallel()
			requireTool(t, s.programs...)
			valid, forged := deliveries() // now, because a parallel test may wait for minutes before it runs
			to := t.TempDir()
			words := func(command string) []string { return strings.Fields(strings.ReplaceAll(command, "OUT", to)) }
			start := words(s.startCommand)
			if s.language == "php" {
				start = append(requirePHP(t), start...)
			}
			if s.buildCommand != "" {
				if output, err := verifyCommand(t, words(s.buildCommand)...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, output)
				}
			}
			usage, err := verifyCommand(t, start...).CombinedOutput()
			if err == nil || strings.Count(string(usage), "\n") != 1 || !strings.Contains(string(usage),
				" ID TIMESTAMP SIGNATURE < BODY") {
				t.Errorf("without arguments it ended with %v and printed %q, want one line of usage", err, usage)
			}
			for name, d := range valid {
				if output, err := verify(t, start, d); err != nil || output != "verified" {
					t.Errorf("%s: the sample ended with %v and printed %q", name, err, output)
				}
			}
			for name, d := range forged {
				if output, err := verify(t, start, d.signedRequest); err == nil || output != d.want {
					t.Errorf("%s: the sample ended with %v and printed %q, want %q", name, err, output, d.want)
				}
			}
		})
	}
}

// requirePHP returns the command of PHP. Without PHP the test fails in CI and is skipped elsewhere.
func requirePHP(t *testing.T) []string {
	t.Helper()
	arguments, err := php()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return slices.Clone(arguments)
}

// verify runs a sample with a delivery and returns its output.
func verify(t *testing.T, start []string, d signedRequest) (string, error) {
	t.Helper()
	command := verifyCommand(t, slices.Concat(start, []string{d.id, d.timestamp, d.signature})...)
	command.Env = append(os.Environ(), "WEBHOOK_SECRET="+d.secret, "LC_ALL=C.UTF-8") // else Java reads é as ??
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
