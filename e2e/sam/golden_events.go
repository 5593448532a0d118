//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mobilegateway/e2e/harness"
)

// goldenEvent is a function's golden event, what stands in its answer, and what must have happened around it.
type goldenEvent struct {
	function, file, wantOutput string
	order                      string // the order_id's end, where the event names one
	prepare, verify            func(context.Context, *goldenRun) error
}

// The payments of the golden events: the operator calls back for the one, and is silent about the other.
const (
	callbackOrder = "4711"
	lookupOrder   = "4712"
	smsKey        = "golden-sms"
)

// goldenEvents are all of them, in an order in which each finds what those before it did.
func goldenEvents() []goldenEvent {
	return []goldenEvent{
		{function: "ChargeFunction", file: "charge.json", wantOutput: `"statusCode": 201`, verify: wantOneEffect("golden-charge")},
		{function: "PayFunction", file: "pay.json", order: callbackOrder, wantOutput: `"statusCode": 201`, verify: completePayment(callbackOrder)},
		{function: "PayFunction", file: "pay.json", order: lookupOrder, wantOutput: `"statusCode": 201`, verify: completePayment(lookupOrder)},
		{function: "SmsFunction", file: "sms.json", wantOutput: `"statusCode": 201`, verify: wantOneEffect(smsKey)},
		{function: "TokenFunction", file: "token.json", wantOutput: `"statusCode": 200`},
		{function: "ReceiptFunction", file: "receipt.json", wantOutput: `"statusCode": 200`, prepare: findCallback(smsKey), verify: wantOutboxEntry(smsKey)},
		{function: "NotifFunction", file: "notif.json", order: callbackOrder, wantOutput: `"statusCode": 200`, prepare: findCallback(callbackOrder)},
		// At once: for a minute what is to be told is the relay's, then the sweep's.
		{function: "RelayFunction", file: "relay.json", order: callbackOrder, wantOutput: `"batchItemFailures": []`, prepare: wantOutboxEntry(callbackOrder), verify: wantOneNotification(callbackOrder)},
		{function: "StatusFunction", file: "status.json", order: callbackOrder, wantOutput: `\"status\":\"successful\"`},
		{function: "SweepFunction", file: "sweep.json", wantOutput: "\n{}", verify: wantSuccessful(lookupOrder)}, // on a line of its own
	}
}

// goldenRun are the golden events on their way.
type goldenRun struct {
	*fixture
	variables map[string]string // what stands for ${name} in an event

	mu     sync.Mutex
	images []json.RawMessage // the ledger's, as its stream shows them
}

// Invoke implements dynamo.Invoker: it keeps what the stream shows.
func (i *goldenRun) Invoke(_ context.Context, payload []byte) (result []byte, functionError bool, err error) {
	var event struct {
		Records []struct {
			DynamoDB struct{ NewImage json.RawMessage }
		}
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, false, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, record := range event.Records {
		i.images = append(i.images, record.DynamoDB.NewImage)
	}
	return []byte(`{"batchItemFailures":[]}`), false, nil
}

// latestImage is the latest that tells of something.
func (i *goldenRun) latestImage(text string) (found json.RawMessage) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, image := range i.images {
		if strings.Contains(string(image), text) {
			found = image
		}
	}
	return found
}

// invokeGoldenEvents invokes every function of the template with its golden events, in containers of its own.
func (p *suite) invokeGoldenEvents(ctx context.Context) error {
	i := &goldenRun{fixture: p.goldens, variables: map[string]string{}}
	shop, err := json.Marshal(p.goldens.info.MerchantCredentials) //nolint:gosec // G117: the demo merchant's own credentials, for its own events
	if err == nil {
		err = json.Unmarshal(shop, &i.variables)
	}
	if err != nil {
		return err
	}
	i.variables["inbox"] = i.info.InboxURL
	go i.pumpStream(ctx, i, false)
	for _, g := range goldenEvents() {
		if err := i.invoke(ctx, g); err != nil {
			return fmt.Errorf("sam local invoke %s with %s: %w", g.function, g.file, err)
		}
		p.logf("sam local invoke %s with %s: %q", g.function, g.file, g.wantOutput)
	}
	return nil
}

// invoke invokes one.
func (i *goldenRun) invoke(ctx context.Context, g goldenEvent) error {
	i.variables["order"] = i.fullKey(g.order)
	if g.prepare != nil {
		if err := g.prepare(ctx, i); err != nil {
			return err
		}
	}
	event, err := i.writeEvent(g)
	if err != nil {
		return err
	}
	output, err := i.invokeWithSAM(ctx, g, event)
	if err != nil {
		return err
	}
	if err := g.checkOutput(output); err != nil { // SAM itself says nothing of a function's error
		return fmt.Errorf("%w\n%s", err, output)
	}
	if g.verify == nil {
		return nil
	}
	return g.verify(ctx, i)
}

// maxInvokeAttempts is how often an event is sent that got no answer.
const maxInvokeAttempts = 3

// isRetryable are SAM's words for that: the engine accepted the event before the container listened, and lost it; or the
// machine had no time for an emulated processor. Who calls a function sends the event again then, and so does this.
func isRetryable(output string) bool {
	return strings.Contains(output, "No response from invoke container") || strings.Contains(output, "timed out after")
}

// invokeWithSAM invokes a function and gives what SAM prints.
func (i *goldenRun) invokeWithSAM(ctx context.Context, g goldenEvent, event string) (output string, err error) {
	log := filepath.Join(i.Dir, fmt.Sprintf("invoke-%s%s.log", g.function, g.order))
	environment, arguments := i.samLocalCommand("invoke", "--event", event)
	for attempt := 0; attempt == 0 || attempt < maxInvokeAttempts && isRetryable(output); attempt++ {
		if err := harness.Run(ctx, log, i.Root, environment, harness.SAMPath(i.Root), append(arguments, g.function)...); err != nil {
			return "", err
		}
		text, err := os.ReadFile(log)
		if err != nil {
			return "", err
		}
		output = string(text)
	}
	return output, nil
}

// writeEvent writes the event with values in place of their names.
func (i *goldenRun) writeEvent(g goldenEvent) (string, error) {
	text, err := os.ReadFile(filepath.Join(i.Root, "e2e", "sam", "testdata", g.file))
	if err != nil {
		return "", err
	}
	path := filepath.Join(i.Dir, g.order+g.file)
	content := os.Expand(string(text), func(name string) string { return i.variables[name] })
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// checkOutput looks for the answer, and for none of the ways in which an invocation fails.
func (g goldenEvent) checkOutput(output string) error {
	compact := strings.ReplaceAll(strings.ReplaceAll(output, `":`, `": `), `":  `, `": `)
	for _, errorText := range []string{`"errorMessage"`, "timed out", "Error: "} {
		if strings.Contains(output, errorText) {
			return fmt.Errorf("there is %q in the output", errorText)
		}
	}
	if !strings.Contains(compact, g.wantOutput) && !strings.Contains(output, g.wantOutput) {
		return fmt.Errorf("there is no %s in the output", g.wantOutput)
	}
	return nil
}

// fullKey is an order_id by its end; the key of an SMS is whole.
func (i *goldenRun) fullKey(key string) string {
	if key == smsKey {
		return key
	}
	return i.variables["merchant"] + "_" + key
}

// effectTimeout is how long what an invocation sets off may take.
const effectTimeout = 20 * time.Second

// eventually repeats a look until it holds.
func eventually(ctx context.Context, check func() error) error {
	for started := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil || time.Since(started) > effectTimeout || ctx.Err() != nil {
			return err
		}
	}
}

// callStub asks one of the partners for JSON, or tells it something.
func callStub(ctx context.Context, method, address, body string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := newClient().Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return errors.Join(err, fmt.Errorf("%s %s answers %d: %s", method, address, response.StatusCode, text))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// wantOneEffect: it really happened at the operator, once.
func wantOneEffect(key string) func(context.Context, *goldenRun) error {
	return func(ctx context.Context, i *goldenRun) error {
		var effects []any
		err := callStub(ctx, http.MethodGet, i.info.SandboxURL+"/sandbox/v1/effects?key="+url.QueryEscape(key), "", &effects)
		if err == nil && len(effects) != 1 {
			err = fmt.Errorf("%d effects under %s at the operator, want one", len(effects), key)
		}
		return err
	}
}

// completePayment: the purchaser pays, and the operator calls nobody back.
func completePayment(order string) func(context.Context, *goldenRun) error {
	return func(ctx context.Context, i *goldenRun) error {
		body := fmt.Sprintf(`{"key":%q,"status":"successful","silent":true}`, i.fullKey(order))
		return callStub(ctx, http.MethodPost, i.info.SandboxURL+"/sandbox/v1/settle", body, nil)
	}
}

// findCallback finds the address that the gateway signed for the operator.
func findCallback(key string) func(context.Context, *goldenRun) error {
	return func(ctx context.Context, i *goldenRun) error {
		var transactions []struct {
			CallbackURL string `json:"callback_url"`
		}
		if err := callStub(ctx, http.MethodGet, i.info.SandboxURL+"/sandbox/v1/transactions?key="+url.QueryEscape(i.fullKey(key)), "", &transactions); err != nil {
			return err
		}
		if len(transactions) != 1 {
			return fmt.Errorf("the operator knows %d transactions under %s", len(transactions), key)
		}
		parts := strings.Split(transactions[0].CallbackURL, "/")
		if len(parts) < 3 {
			return fmt.Errorf("%q is no callback address", transactions[0].CallbackURL)
		}
		i.variables["token"], i.variables["request_id"] = parts[len(parts)-1], parts[len(parts)-2]
		return nil
	}
}

// wantOutboxEntry: the stream shows that there is something to tell about a payment or an SMS. The image goes into the values.
func wantOutboxEntry(key string) func(context.Context, *goldenRun) error {
	return func(ctx context.Context, i *goldenRun) error {
		return eventually(ctx, func() error {
			image := i.latestImage(i.fullKey(key))
			if !strings.Contains(string(image), `"ob"`) {
				return fmt.Errorf("the ledger's stream shows nothing to tell about %s: %s", key, image)
			}
			i.variables["image"] = strings.TrimSuffix(strings.TrimPrefix(string(image), "{"), "}") // the golden event has more attributes
			return nil
		})
	}
}

// wantOneNotification: the merchant was told of a payment, once.
func wantOneNotification(order string) func(context.Context, *goldenRun) error {
	return func(ctx context.Context, i *goldenRun) error {
		return eventually(ctx, func() error {
			var messages []struct{ Body string }
			err := callStub(ctx, http.MethodGet, i.info.InboxURL+"/messages?order_id="+i.fullKey(order), "", &messages)
			if err == nil && (len(messages) != 1 || !strings.Contains(messages[0].Body, `"successful"`)) {
				err = fmt.Errorf("the merchant was told of %s: %v, want one success", order, messages)
			}
			return err
		})
	}
}

// wantSuccessful: the stream shows that a payment has become successful.
func wantSuccessful(order string) func(context.Context, *goldenRun) error {
	return func(ctx context.Context, i *goldenRun) error {
		return eventually(ctx, func() error {
			image := i.latestImage(i.fullKey(order))
			if !strings.Contains(string(image), `"successful"`) {
				return fmt.Errorf("the sweep did not settle %s: %s", order, image)
			}
			return nil
		})
	}
}
