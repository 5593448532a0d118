package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"mobilegateway/gatewayctl/output"
)

// sandboxPage is the data of the page of the local run's sandbox operator.
type sandboxPage struct {
	Orders  table
	Scripts table
	Digits  []string // the endings of numbers; their texts have the keys digits.<digits>
	Words   []string // of a script
	Kinds   []string
	Done    string // a text key
}

// sandboxDigits are the last digits of a payer's number that select an outcome.
var sandboxDigits = []string{
	"1001", "1002", "1003", "1004", "1005", "1006", "1007", "1008", "1009", "1010", "1011", "2000",
}

// scriptWords are calls that a script of the sandbox may have.
var scriptWords = []string{
	"ok", "slow", "cut", "lost", "garbage", "empty", "503", "500", "429", "401", "POL0253", "POL1000", "SVC0270",
}

// scriptKinds are the calls that a script can be for; "" for each charge, payment or SMS.
var scriptKinds = []string{"", "charge", "payment", "sms", "getstatus"}

// finalStatuses are the endings of a payment that a person can choose.
var finalStatuses = []string{"successful", "failed", "cancelled"}

// The control port of the sandbox, and the most that is read from it.
const (
	sandboxPath     = "/sandbox/v1/"
	maxSandboxBytes = 16 << 20
)

// loadSandbox lists the orders at the sandbox operator as they arrive, with what a person may do with each.
func loadSandbox(q *query) any {
	p := sandboxPage{Digits: sandboxDigits, Words: scriptWords, Kinds: scriptKinds}
	if q.form.Get("done") != "" {
		p.Done = "sandbox.done"
	}
	q.parallel(2, func(i int) {
		if i == 0 {
			p.Orders = sandboxOrders.arrange(q.console.sandbox(q, http.MethodGet, "transactions", nil))
		} else {
			p.Scripts = sandboxScripts.arrange(q.console.sandbox(q, http.MethodGet, "script", nil))
		}
	})
	return p
}

var sandboxOrders = listing{
	title: "orders", newest: true,
	columns: []column{
		{"created_at", "time"}, {"kind", "word"}, {"key", "order"}, {"state", "word"}, {"amount", "amount"},
		{"calls", ""}, {"lookups", ""}, {"effects", ""}, {"payment_url", "page"},
	},
	ends: func(row map[string]any) bool { return raw(row["kind"]) == "payment" },
}

var sandboxScripts = listing{
	title: "scripts", columns: []column{{"key", "code"}, {"kind", "word"}, {"calls", ""}},
}

// sandbox sends a request to the sandbox's control port.
func (c *Console) sandbox(ctx context.Context, method, path string, body any) result {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	address := c.SandboxURL + sandboxPath + path
	out := result{Line: "curl -X " + method + " " + address, At: c.Now()}
	var sent []byte
	if body != nil {
		sent, _ = json.Marshal(body) // texts only
		out.Line += " -d '" + strings.ReplaceAll(string(sent), "'", `'\''`) + "'"
	}
	out.Line = output.EscapeUnprintable(out.Line)
	//nolint:gosec // the address is that of the local run, and the path is a constant
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(sent))
	if err != nil {
		out.Error = err.Error()
		return out
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Client.Do(request) //nolint:gosec // as above
	if err != nil {
		out.Error = err.Error()
		return out
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(io.LimitReader(response.Body, maxSandboxBytes))
	decoder.UseNumber()
	_ = decoder.Decode(&out.Value) // a body that is not JSON has nothing to show
	if response.StatusCode/100 != 2 {
		out.Error = fmt.Sprintf("%d %s", response.StatusCode, text(field(out.Value, "error")))
		out.Value = nil
	}
	return out
}

// serveSandbox ends a payment at the sandbox, or scripts its next calls. Only POST comes here.
func (c *Console) serveSandbox(w http.ResponseWriter, r *http.Request, q *query) {
	if !c.AllowChanges {
		c.refuse(w, q, http.StatusForbidden, "error.read-only")
		return
	}
	key, status := r.PostFormValue("key"), r.PostFormValue("status")
	word, kind := r.PostFormValue("call"), r.PostFormValue("kind")
	var done result
	switch {
	case slices.Contains(finalStatuses, status):
		done = c.sandbox(r.Context(), http.MethodPost, "settle", map[string]any{"key": key, "status": status})
	case slices.Contains(scriptWords, word) && slices.Contains(scriptKinds, kind) && key != "":
		script := map[string]any{"key": key, "calls": []string{word}}
		if kind != "" {
			script["kind"] = kind
		}
		done = c.sandbox(r.Context(), http.MethodPost, "script", script)
	default:
		c.refuse(w, q, http.StatusBadRequest, "error.sandbox")
		return
	}
	if done.Error != "" {
		refused := actPage{Result: done, Line: done.Line, Back: "/sandbox"}
		c.render(w, q, http.StatusOK, page{name: "act", body: "act"}, refused)
		return
	}
	http.Redirect(w, r, "/sandbox?done=1", http.StatusSeeOther)
}
