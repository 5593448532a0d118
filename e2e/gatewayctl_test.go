package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/localtest"
)

// ctlSession is an operations engineer at a local run, with gatewayctl on the PATH.
type ctlSession struct {
	t       *testing.T
	target  *target
	program string
	run     *localtest.Gateway
}

// newCtlSession starts a run and builds the tool.
func newCtlSession(t *testing.T, options localtest.Options) *ctlSession {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gatewayctl")
	output, err := exec.Command("go", "build", "-o", program, "../cmd/gatewayctl").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	run := localtest.Start(t, options)
	return &ctlSession{t, mustReadTarget(t, filepath.Join(run.Dir, "run.json")), program, run}
}

// withT is the same engineer in a test below.
func (e *ctlSession) withT(t *testing.T) *ctlSession {
	below := *e
	below.t = t
	return &below
}

// runCommand runs a command, words parted by spaces, and gives the exit code and what it wrote.
func (e *ctlSession) runCommand(line string) (code int, out, stderr string) {
	e.t.Helper()
	command := exec.Command(e.program, append([]string{"--local", "--json"}, strings.Fields(line)...)...)
	command.Env = append(os.Environ(), "LOCAL_DIR="+e.run.Dir)
	var o, n bytes.Buffer
	command.Stdout, command.Stderr = &o, &n
	if err := command.Run(); command.ProcessState == nil {
		e.t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), o.String(), n.String()
}

// mustRun runs a command that must succeed, and gives its answer and what it told beside.
func (e *ctlSession) mustRun(line string, into any) (stderr string) {
	e.t.Helper()
	code, out, stderr := e.runCommand(line)
	if code != 0 {
		e.t.Fatalf("gatewayctl %s: exit %d: %s", line, code, stderr)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(out), into); err != nil {
			e.t.Fatalf("gatewayctl %s: %v in %s", line, err, out)
		}
	}
	return stderr
}

// confirmFlags makes a command's change happen.
const confirmFlags = " --yes --reason story"

// createdMerchant is a merchant that the tool made.
type createdMerchant struct {
	merchantCredentials
	id        string
	notifyURL string
}

// createMerchant makes a merchant with one command, notified at an address.
func (e *ctlSession) createMerchant(name, notifyURL string) createdMerchant {
	e.t.Helper()
	var shown struct {
		ID            string `json:"id"`
		AccessToken   string `json:"access_token"`
		ClientID      string `json:"client_id"`
		ClientSecret  string `json:"client_secret"`
		WebhookSecret string `json:"webhook_secret"`
	}
	e.mustRun("merchant add "+name+" --country ci --operator sandbox --notif-url "+notifyURL+confirmFlags, &shown)
	made := createdMerchant{e.target.merchantCredentials, shown.ID, notifyURL}
	made.Merchant, made.OnBehalfOf, made.AccessToken = name, name, shown.AccessToken
	made.ClientID, made.ClientSecret, made.WebhookSecret = shown.ClientID, shown.ClientSecret, shown.WebhookSecret
	return made
}

// withToken is the merchant with another token.
func (o createdMerchant) withToken(token string) merchantCredentials {
	from := o.merchantCredentials
	from.AccessToken = token
	return from
}

// issuedSecret is what the tool shows of a new credential.
type issuedSecret struct {
	Number  int       `json:"number"`
	Secret  string    `json:"secret"`
	Version int       `json:"version"`
	Webhook string    `json:"webhook_secret"`
	EndAt   time.Time `json:"end_at"`
}

// sendForStatus sends a request and gives the status, 0 for none.
func sendForStatus(a *requestBuilder, base string) (int, error) {
	request, err := a.build(base)
	if err != nil {
		return 0, err
	}
	response, err := exchange(newClient(), request)
	return response.status, err
}

// chargeOnce charges once with a merchant's token.
func (e *ctlSession) chargeOnce(from merchantCredentials, want int) error {
	got, err := sendForStatus(newCharge(from, e.target.newID(), from.GWAlias), e.target.BaseURL)
	if err == nil && got != want {
		err = fmt.Errorf("the charge is answered %d, want %d", got, want)
	}
	return err
}

// fetchToken asks the token endpoint.
func (e *ctlSession) fetchToken(clientID, clientSecret string) (token string, status int, err error) {
	a := newRequestBuilder(e.target.merchantCredentials, http.MethodPost, "/token?grant_type=client_credentials")
	a.body = nil
	request, err := a.build(e.target.BaseURL)
	if err != nil {
		return "", 0, err
	}
	request.SetBasicAuth(clientID, clientSecret)
	request.Header.Del("Content-Type")
	response, err := exchange(newClient(), request)
	if err != nil {
		return "", 0, err
	}
	token, _ = response.textValue("access_token")
	return token, response.status, nil
}

// eventually waits until a look finds no fault.
func (e *ctlSession) eventually(check func() error) {
	e.t.Helper()
	eventually(e.t, 40*time.Second, func() (struct{}, error) { return struct{}{}, check() })
}
