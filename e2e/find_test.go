package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"mobilegateway/proof/kits/localtest"
)

// foundTransactions is the output of find.
type foundTransactions struct {
	Matches []struct {
		ID      string `json:"id"`
		FoundBy string `json:"found_by"`
	} `json:"matches"`
	LogCommand string `json:"log_command"`
}

// expectFound checks that find has exactly one transaction, by a field.
func (e *ctlSession) expectFound(line, id, by string) {
	e.t.Helper()
	var found foundTransactions
	e.mustRun("find "+line, &found)
	if len(found.Matches) != 1 || found.Matches[0].ID != id || found.Matches[0].FoundBy != by {
		e.t.Errorf("find %s: %+v, want %s by %s", line, found.Matches, id, by)
	}
}

// An engineer on call has one value of a charge or a payment, and gets to its whole history. A conflict is
// listed until the command of its line ends it.
func TestFindAndAttention(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a gateway")
	}
	e := newCtlSession(t, localtest.Options{})
	g := e.target
	if code, out, stderr := e.runCommand("attention"); code != 0 {
		t.Errorf("attention of a new run: exit %d: %s%s", code, out, stderr)
	}

	key := g.newID()
	script := map[string]any{"key": g.Merchant + "." + key, "calls": []string{"garbage", "503", "ok"}}
	if err := g.sandboxControl(http.MethodPost, "script", script, nil); err != nil {
		t.Fatal(err)
	}
	requestID := ""
	for _, want := range []int{504, 504, 201} {
		response, err := g.send(newCharge(g.MerchantCredentials, key, g.GWAlias))
		if err != nil || response.status != want {
			t.Fatalf("the charge got %d, want %d: %v", response.status, want, err)
		}
		requestID = response.header.Get("X-Amzn-Requestid")
	}
	var history struct {
		ID           string `json:"id"`
		CallAttempts []struct {
			Outcome  string `json:"outcome"`
			Reason   string `json:"reason"`
			Status   int    `json:"operator_status"`
			Response int    `json:"response_status"`
		} `json:"call_attempts"`
	}
	e.mustRun("charge show --merchant "+g.Merchant+" --correlator "+key, &history)
	const attempts = "[{unknown response 200 504} {not-applied unavailable 503 504} {succeeded  201 201}]"
	if got := fmt.Sprint(history.CallAttempts); got != attempts {
		t.Errorf("attempts %s, want %s", got, attempts)
	}
	e.expectFound(key, history.ID, "clientCorrelator")
	e.expectFound("REF-"+key, history.ID, "referenceCode")
	e.expectFound(g.Merchant+"."+key, history.ID, "clientCorrelator")
	e.checkLogCommand(requestID, key)

	order := g.Merchant + "_" + g.newID()
	const msisdn = "+2250712342000"
	if status, err := g.sendForStatus(newPayment(g.MerchantCredentials, order, "ussd", msisdn)); status != 201 {
		t.Fatalf("the payment got %d: %v", status, err)
	}
	webhookID := e.webhookIDOf(order)
	e.expectFound(order, order, "order_id")
	e.expectFound(webhookID, order, "webhook-id")
	e.expectFound(strings.TrimPrefix(msisdn, "+225"), order, "MSISDN")
	e.checkConflictIsClosed(order)
}

// checkLogCommand runs the command that find prints for a request id: it shows the line with the transaction's key.
func (e *ctlSession) checkLogCommand(requestID, key string) {
	e.t.Helper()
	code, out, _ := e.runCommand("find " + requestID)
	var found foundTransactions
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 1 {
		e.t.Fatalf("find %s: exit %d: %s", requestID, code, out)
	}
	command := exec.Command("sh", "-c", found.LogCommand)
	lines, err := command.Output()
	if err != nil || !strings.Contains(string(lines), `"TransactionKey":"`+key+`"`) {
		e.t.Errorf("%s: %v: %s", found.LogCommand, err, lines)
	}
}

// webhookIDOf waits until a payment's notification was delivered, and returns its webhook-id.
func (e *ctlSession) webhookIDOf(order string) (id string) {
	e.t.Helper()
	e.eventually(func() error {
		var history struct {
			Notifications []struct {
				WebhookID string `json:"webhook_id"`
				State     string `json:"state"`
			} `json:"notifications"`
		}
		e.mustRun("deliveries show "+order, &history)
		if len(history.Notifications) != 1 || history.Notifications[0].State != "delivered" {
			return fmt.Errorf("the notifications are %+v", history.Notifications)
		}
		id = history.Notifications[0].WebhookID
		return nil
	})
	return id
}

// checkConflictIsClosed lets the operator contradict a payment's final status. attention lists that until its command
// was run.
func (e *ctlSession) checkConflictIsClosed(order string) {
	e.t.Helper()
	change := map[string]any{"key": order, "status": "failed", "force": true}
	if err := e.target.sandboxControl(http.MethodPost, "settle", change, nil); err != nil {
		e.t.Fatal(err)
	}
	var command string
	e.eventually(func() error {
		code, out, _ := e.runCommand("attention --no-lookup")
		var lines []struct{ What, Subject, Command string }
		if err := json.Unmarshal([]byte(out), &lines); err != nil || code != 3 || len(lines) != 1 ||
			lines[0].What != "conflict" || lines[0].Subject != "pay#"+order {
			return fmt.Errorf("attention: exit %d: %s", code, out)
		}
		command = lines[0].Command
		return nil
	})
	e.mustRun(strings.TrimPrefix(command, "gatewayctl --local "), nil)
	if code, out, stderr := e.runCommand("attention"); code != 0 {
		e.t.Errorf("attention after %s: exit %d: %s%s", command, code, out, stderr)
	}
}
