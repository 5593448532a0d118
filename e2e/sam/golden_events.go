//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mobilegateway/e2e/harness"
)

// goldenEvent is one event for a function. Its output must contain wantOutput. key is the key at the operator, or the
// order, that prepare and verify check before and after the invocation.
type goldenEvent struct {
	function, file, wantOutput string
	key                        string
	prepare, verify            func(run *goldenRun, ctx context.Context, key string) error
}

// The keys of the golden events, with variables of the run. The operator sends a callback for the first payment only.
const (
	chargeKey     = "golden-charge"
	smsKey        = "golden-sms"
	callbackOrder = "${merchant}_4711"
	lookupOrder   = "${merchant}_4712"
)

// goldenEvents returns all golden events. Each relies on the effects of those before it.
func goldenEvents() []goldenEvent {
	const created, ok = `"statusCode": 201`, `"statusCode": 200`
	return []goldenEvent{
		{"ChargeFunction", "charge.json", created, chargeKey, nil, (*goldenRun).wantOneEffect},
		{"PayFunction", "pay.json", created, callbackOrder, nil, (*goldenRun).completePayment},
		{"PayFunction", "pay.json", created, lookupOrder, nil, (*goldenRun).completePayment},
		{"SmsFunction", "sms.json", created, smsKey, nil, (*goldenRun).wantOneEffect},
		{"TokenFunction", "token.json", ok, "", nil, nil},
		{"ReceiptFunction", "receipt.json", ok, smsKey, (*goldenRun).findCallback, (*goldenRun).wantOutboxEntry},
		{"NotifFunction", "notif.json", ok, callbackOrder, (*goldenRun).findCallback, nil},
		// The relay must follow at once: after a minute the sweep delivers the notification.
		{
			"RelayFunction", "relay.json", `"batchItemFailures": []`, callbackOrder,
			(*goldenRun).wantOutboxEntry, (*goldenRun).wantOneNotification,
		},
		{"StatusFunction", "status.json", `\"status\":\"successful\"`, callbackOrder, nil, nil},
		{"SweepFunction", "sweep.json", "\n{}", lookupOrder, nil, (*goldenRun).wantSuccessful}, // a line of its own
	}
}

type goldenRun struct {
	*fixture
	variables map[string]string // replace ${name} in keys and events

	mu     sync.Mutex
	images []json.RawMessage // the ledger's items, from its stream
}

// Invoke implements dynamo.Invoker: it stores the images of the stream's records.
func (g *goldenRun) Invoke(_ context.Context, payload []byte) (result []byte, functionError bool, err error) {
	var event struct {
		Records []struct {
			DynamoDB struct{ NewImage json.RawMessage }
		}
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, record := range event.Records {
		g.images = append(g.images, record.DynamoDB.NewImage)
	}
	return []byte(`{"batchItemFailures":[]}`), false, nil
}

// expand replaces ${name} by the run's variables.
func (g *goldenRun) expand(text string) string {
	return os.Expand(text, func(name string) string { return g.variables[name] })
}

// invokeGoldenEvents invokes every function of the template with its golden events, each in a new container.
func (s *suite) invokeGoldenEvents(ctx context.Context) error {
	g := &goldenRun{fixture: s.goldens, variables: map[string]string{}}
	shop, err := json.Marshal(g.info.MerchantCredentials) //nolint:gosec // G117: credentials of the demo merchant
	if err == nil {
		err = json.Unmarshal(shop, &g.variables)
	}
	if err != nil {
		return err
	}
	g.variables["inbox"] = g.info.InboxURL
	go g.pumpStream(ctx, g, false)
	for _, event := range goldenEvents() {
		if err := g.invoke(ctx, event); err != nil {
			return fmt.Errorf("sam local invoke %s with %s: %w", event.function, event.file, err)
		}
		s.Logf("sam local invoke %s with %s: %q", event.function, event.file, event.wantOutput)
	}
	return nil
}

func (g *goldenRun) invoke(ctx context.Context, event goldenEvent) error {
	key := g.expand(event.key)
	g.variables["order"] = key
	if event.prepare != nil {
		if err := event.prepare(g, ctx, key); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(g.Root, "e2e", "sam", "testdata", event.file))
	if err != nil {
		return err
	}
	path := filepath.Join(g.Dir, key+"-"+event.file)
	if err := os.WriteFile(path, []byte(g.expand(string(text))), 0o600); err != nil {
		return err
	}
	output, err := g.invokeWithSAM(ctx, event.function, path)
	if err != nil {
		return err
	}
	if err := event.checkOutput(output); err != nil { // SAM does not report a function's error itself
		return fmt.Errorf("%w\n%s", err, output)
	}
	if event.verify == nil {
		return nil
	}
	return event.verify(g, ctx, key)
}

// maxInvokeAttempts is how often an event is sent that got no response.
const maxInvokeAttempts = 3

// isRetryable reports whether SAM lost an event: the engine accepted it before the container listened, or the emulated
// processor was too slow. Callers of a function retry then, and so does this test.
func isRetryable(output string) bool {
	return strings.Contains(output, "No response from invoke container") || strings.Contains(output, "timed out after")
}

func (g *goldenRun) invokeWithSAM(ctx context.Context, function, event string) (output string, err error) {
	log := event + ".log"
	environment, arguments := g.samLocalCommand("invoke", "--event", event)
	for attempt := 0; attempt == 0 || attempt < maxInvokeAttempts && isRetryable(output); attempt++ {
		err := harness.Run(ctx, log, g.Root, environment, harness.SAMPath(g.Root), append(arguments, function)...)
		if err != nil {
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

func (e goldenEvent) checkOutput(output string) error {
	for _, errorText := range []string{`"errorMessage"`, "timed out", "Error: "} {
		if strings.Contains(output, errorText) {
			return fmt.Errorf("the output contains %q", errorText)
		}
	}
	spaced := strings.ReplaceAll(strings.ReplaceAll(output, `":`, `": `), `":  `, `": `)
	if !strings.Contains(spaced, e.wantOutput) && !strings.Contains(output, e.wantOutput) {
		return fmt.Errorf("the output does not contain %s", e.wantOutput)
	}
	return nil
}

// callStub sends a request to a stub and decodes its JSON response into a value, if there is one.
func callStub(ctx context.Context, method, address, body string, into any) error {
	text, _, err := harness.Call(ctx, method, address, body, http.Header{"Content-Type": {"application/json"}})
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (g *goldenRun) wantOneEffect(ctx context.Context, key string) error {
	var effects []any
	address := g.info.SandboxURL + "/sandbox/v1/effects?key=" + url.QueryEscape(key)
	err := callStub(ctx, http.MethodGet, address, "", &effects)
	if err == nil && len(effects) != 1 {
		err = fmt.Errorf("%d effects at the operator under %s, want one", len(effects), key)
	}
	return err
}

// completePayment makes the payment successful at the operator, without a callback.
func (g *goldenRun) completePayment(ctx context.Context, order string) error {
	body := fmt.Sprintf(`{"key":%q,"status":"successful","silent":true}`, order)
	return callStub(ctx, http.MethodPost, g.info.SandboxURL+"/sandbox/v1/settle", body, nil)
}

// findCallback reads the signed callback address at the operator into the variables.
func (g *goldenRun) findCallback(ctx context.Context, key string) error {
	var transactions []struct {
		CallbackURL string `json:"callback_url"`
	}
	address := g.info.SandboxURL + "/sandbox/v1/transactions?key=" + url.QueryEscape(key)
	if err := callStub(ctx, http.MethodGet, address, "", &transactions); err != nil {
		return err
	}
	if len(transactions) != 1 {
		return fmt.Errorf("%d transactions at the operator under %s, want one", len(transactions), key)
	}
	parts := strings.Split(transactions[0].CallbackURL, "/")
	if len(parts) < 3 {
		return fmt.Errorf("%q is not a callback address", transactions[0].CallbackURL)
	}
	g.variables["token"], g.variables["request_id"] = parts[len(parts)-1], parts[len(parts)-2]
	return nil
}

// effectTimeout is how long the effect of an invocation may take.
const effectTimeout = 20 * time.Second

// waitForImage waits until the stream's latest image of a key contains a text, and returns the image.
func (g *goldenRun) waitForImage(ctx context.Context, key, text string) (latest string, err error) {
	err = harness.Poll(ctx, effectTimeout, func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, image := range g.images {
			if strings.Contains(string(image), key) {
				latest = string(image)
			}
		}
		if !strings.Contains(latest, text) {
			return fmt.Errorf("the ledger's stream shows no %s for %s: %s", text, key, latest)
		}
		return nil
	})
	return latest, err
}

// wantOutboxEntry waits until the stream shows an outbox entry for a key. The image becomes a variable.
func (g *goldenRun) wantOutboxEntry(ctx context.Context, key string) error {
	image, err := g.waitForImage(ctx, key, `"ob"`)
	// The golden event adds more attributes to the image.
	g.variables["image"] = strings.TrimSuffix(strings.TrimPrefix(image, "{"), "}")
	return err
}

func (g *goldenRun) wantSuccessful(ctx context.Context, order string) error {
	_, err := g.waitForImage(ctx, order, `"successful"`)
	return err
}

func (g *goldenRun) wantOneNotification(ctx context.Context, order string) error {
	return harness.Poll(ctx, effectTimeout, func() error {
		var messages []struct{ Body string }
		err := callStub(ctx, http.MethodGet, g.info.InboxURL+"/messages?order_id="+order, "", &messages)
		if err == nil && (len(messages) != 1 || !strings.Contains(messages[0].Body, `"successful"`)) {
			err = fmt.Errorf("the merchant got the notifications %v for %s, want one success", messages, order)
		}
		return err
	})
}
