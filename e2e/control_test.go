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

// engineer is an operations engineer at a local run, with gatewayctl on the PATH.
type engineer struct {
	t       *testing.T
	g       *target
	program string
	run     *localtest.Run
}

// newEngineer starts a run and builds the tool.
func newEngineer(t *testing.T, options localtest.Options) *engineer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gatewayctl")
	output, err := exec.Command("go", "build", "-o", program, "../cmd/gatewayctl").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	run := localtest.Start(t, options)
	return &engineer{t, mustRead(t, filepath.Join(run.Dir, "run.json")), program, run}
}

// at is the same engineer in a test below.
func (e *engineer) at(t *testing.T) *engineer {
	below := *e
	below.t = t
	return &below
}

// types runs a command, words parted by spaces, and gives the exit code and what it wrote.
func (e *engineer) types(line string) (code int, out, notes string) {
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

// does runs a command that must succeed, and gives its answer and what it told beside.
func (e *engineer) does(line string, into any) (notes string) {
	e.t.Helper()
	code, out, notes := e.types(line)
	if code != 0 {
		e.t.Fatalf("gatewayctl %s: exit %d: %s", line, code, notes)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(out), into); err != nil {
			e.t.Fatalf("gatewayctl %s: %v in %s", line, err, out)
		}
	}
	return notes
}

// because makes a command's change happen.
const because = " --yes --why story"

// onboarded is a merchant that the tool made.
type onboarded struct {
	shop
	id        string
	notifyURL string
}

// onboards makes a merchant with one command, notified at an address.
func (e *engineer) onboards(name, notifyURL string) onboarded {
	e.t.Helper()
	var shown struct {
		ID            string `json:"id"`
		AccessToken   string `json:"access_token"`
		ClientID      string `json:"client_id"`
		ClientSecret  string `json:"client_secret"`
		WebhookSecret string `json:"webhook_secret"`
	}
	e.does("merchant add "+name+" --country ci --operator sandbox --notif-url "+notifyURL+because, &shown)
	made := onboarded{e.g.shop, shown.ID, notifyURL}
	made.Merchant, made.OnBehalfOf, made.AccessToken = name, name, shown.AccessToken
	made.ClientID, made.ClientSecret, made.WebhookSecret = shown.ClientID, shown.ClientSecret, shown.WebhookSecret
	return made
}

// with is the merchant with another token.
func (o onboarded) with(token string) shop {
	from := o.shop
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

// answers sends a request and gives the status, 0 for none.
func answers(a *ask, base string) (int, error) {
	request, err := a.request(base)
	if err != nil {
		return 0, err
	}
	answer, err := exchange(newClient(), request)
	return answer.status, err
}

// charges charges once with a merchant's token.
func (e *engineer) charges(from shop, want int) error {
	got, err := answers(newCharge(from, e.g.newID(), from.GWAlias), e.g.BaseURL)
	if err == nil && got != want {
		err = fmt.Errorf("the charge is answered %d, want %d", got, want)
	}
	return err
}

// fetches asks the token endpoint.
func (e *engineer) fetches(clientID, clientSecret string) (token string, status int, err error) {
	a := newAsk(e.g.shop, http.MethodPost, "/token?grant_type=client_credentials")
	a.body = nil
	request, err := a.request(e.g.BaseURL)
	if err != nil {
		return "", 0, err
	}
	request.SetBasicAuth(clientID, clientSecret)
	request.Header.Del("Content-Type")
	answer, err := exchange(newClient(), request)
	if err != nil {
		return "", 0, err
	}
	token, _ = answer.text("access_token")
	return token, answer.status, nil
}

// soon waits until a look finds no fault.
func (e *engineer) soon(look func() error) {
	e.t.Helper()
	eventually(e.t, 40*time.Second, func() (struct{}, error) { return struct{}{}, look() })
}
