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

	"mobilegateway/e2e/harness"
	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
)

// ctlSession is a local run with the gatewayctl program.
type ctlSession struct {
	t       *testing.T
	target  *target
	program string
	run     *localtest.Gateway
}

// newCtlSession starts a run and builds the program.
func newCtlSession(t *testing.T, options localtest.Options) *ctlSession {
	t.Helper()
	program := buildCommand(t, "gatewayctl")
	run := localtest.Start(t, options)
	return &ctlSession{t, mustReadTarget(t, filepath.Join(run.Dir, "run.json")), program, run}
}

// buildCommand builds a program of cmd/ and returns its path.
func buildCommand(t *testing.T, name string) string {
	t.Helper()
	program, err := harness.BuildProgram(t.Context(), t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// withT returns the session for a subtest.
func (e *ctlSession) withT(t *testing.T) *ctlSession {
	below := *e
	below.t = t
	return &below
}

// runCommand runs a command line and returns the exit code and both outputs.
func (e *ctlSession) runCommand(line string) (code int, out, stderr string) {
	e.t.Helper()
	command := exec.Command(e.program, append([]string{"--local", "--json"}, strings.Fields(line)...)...)
	command.Env = append(os.Environ(), "LOCAL_DIR="+e.run.Dir)
	var o, n bytes.Buffer
	command.Stdout, command.Stderr = &o, &n
	err := command.Run()
	if command.ProcessState == nil {
		e.t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), o.String(), n.String()
}

// mustRun runs a command that must succeed. It decodes the JSON output and returns the standard error.
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

// confirmFlags confirm a change.
const confirmFlags = " --yes --reason story"

// createdMerchant is a merchant created by gatewayctl.
type createdMerchant struct {
	local.MerchantCredentials
	id        string
	notifyURL string
}

// createMerchant creates a merchant with a notification URL.
func (e *ctlSession) createMerchant(name, notifyURL string) createdMerchant {
	e.t.Helper()
	var created struct {
		local.MerchantCredentials
		ID         string   `json:"id"`
		OnBehalfOf []string `json:"on_behalf_of"` // of the profile
		BaseURL    string   `json:"base_url"`
	}
	e.mustRun("merchant add "+name+" --country ci --operator sandbox --notif-url "+notifyURL+confirmFlags, &created)
	made := createdMerchant{created.MerchantCredentials, created.ID, notifyURL}
	made.Merchant, made.OnBehalfOf = name, name
	made.GWToken, made.GWAlias = e.target.GWToken, e.target.GWAlias // every merchant may charge this payer
	if created.BaseURL != e.target.BaseURL {
		e.t.Errorf("merchant add shows the base address %q, want %q", created.BaseURL, e.target.BaseURL)
	}
	return made
}

// withToken returns the merchant's credentials with another token.
func (o createdMerchant) withToken(token string) local.MerchantCredentials {
	from := o.MerchantCredentials
	from.AccessToken = token
	return from
}

// issuedSecret is a new credential in gatewayctl's output.
type issuedSecret struct {
	Number  int       `json:"number"`
	Token   string    `json:"access_token"`
	Secret  string    `json:"client_secret"`
	Version int       `json:"version"`
	Webhook string    `json:"webhook_secret"`
	EndAt   time.Time `json:"end_at"`
}

// sendForStatus sends a request and returns the status, 0 without a response.
func (g *target) sendForStatus(a *requestBuilder) (int, error) {
	response, err := g.send(a)
	return response.status, err
}

// chargeOnce sends a charge and checks the status.
func (e *ctlSession) chargeOnce(from local.MerchantCredentials, want int) error {
	got, err := e.target.sendForStatus(newCharge(from, e.target.newID(), from.GWAlias))
	if err == nil && got != want {
		err = fmt.Errorf("the charge got %d, want %d", got, want)
	}
	return err
}

// fetchToken requests an access token. It returns the status of the response.
func (g *target) fetchToken(clientID, clientSecret string) (token string, status int, err error) {
	a := newRequestBuilder(local.MerchantCredentials{}, http.MethodPost, "/token?grant_type=client_credentials")
	a.body = nil
	request, err := a.build(g.BaseURL)
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

// eventually repeats a check until it returns no error.
func (e *ctlSession) eventually(check func() error) {
	e.t.Helper()
	eventuallyNoError(e.t, 40*time.Second, check)
}
