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

	"mobilegateway/e2e/stage"
)

// golden is a function's golden event, what stands in its answer, and what must have happened around it.
type golden struct {
	function, file, answer string
	order                  string // the order_id's end, where the event names one
	before, after          func(context.Context, *invocations) error
}

// The payments of the golden events: the operator calls back for the one, and is silent about the other.
const (
	toldOrder   = "4711"
	silentOrder = "4712"
	smsKey      = "golden-sms"
)

// goldens are all of them, in an order in which each finds what those before it did.
func goldens() []golden {
	return []golden{
		{function: "ChargeFunction", file: "charge.json", answer: `"statusCode": 201`, after: effect("golden-charge")},
		{function: "PayFunction", file: "pay.json", order: toldOrder, answer: `"statusCode": 201`, after: pays(toldOrder)},
		{function: "PayFunction", file: "pay.json", order: silentOrder, answer: `"statusCode": 201`, after: pays(silentOrder)},
		{function: "SmsFunction", file: "sms.json", answer: `"statusCode": 201`, after: effect(smsKey)},
		{function: "TokenFunction", file: "token.json", answer: `"statusCode": 200`},
		{function: "ReceiptFunction", file: "receipt.json", answer: `"statusCode": 200`, before: callbackOf(smsKey), after: toTell(smsKey)},
		{function: "NotifFunction", file: "notif.json", order: toldOrder, answer: `"statusCode": 200`, before: callbackOf(toldOrder)},
		// At once: for a minute what is to be told is the relay's, then the sweep's.
		{function: "RelayFunction", file: "relay.json", order: toldOrder, answer: `"batchItemFailures": []`, before: toTell(toldOrder), after: told(toldOrder)},
		{function: "StatusFunction", file: "status.json", order: toldOrder, answer: `\"status\":\"successful\"`},
		{function: "SweepFunction", file: "sweep.json", answer: "\n{}", after: settled(silentOrder)}, // on a line of its own
	}
}

// invocations are the golden events on their way.
type invocations struct {
	*scene
	values map[string]string // what stands for ${name} in an event

	mu     sync.Mutex
	images []json.RawMessage // the ledger's, as its stream shows them
}

// Invoke implements dynamo.Invoker: it keeps what the stream shows.
func (i *invocations) Invoke(_ context.Context, payload []byte) (result []byte, functionError bool, err error) {
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

// image is the latest that tells of something.
func (i *invocations) image(text string) (found json.RawMessage) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, image := range i.images {
		if strings.Contains(string(image), text) {
			found = image
		}
	}
	return found
}

// invokeAll invokes every function of the template with its golden events, in containers of its own.
func (p *play) invokeAll(ctx context.Context) error {
	i := &invocations{scene: p.goldens, values: map[string]string{}}
	shop, err := json.Marshal(p.goldens.info.Shop) //nolint:gosec // G117: the demo merchant's own credentials, for its own events
	if err == nil {
		err = json.Unmarshal(shop, &i.values)
	}
	if err != nil {
		return err
	}
	i.values["inbox"] = i.info.InboxURL
	go i.pump(ctx, i, false)
	for _, g := range goldens() {
		if err := i.invoke(ctx, g); err != nil {
			return fmt.Errorf("sam local invoke %s with %s: %w", g.function, g.file, err)
		}
		p.say("sam local invoke %s with %s: %q", g.function, g.file, g.answer)
	}
	return nil
}

// invoke invokes one.
func (i *invocations) invoke(ctx context.Context, g golden) error {
	i.values["order"] = i.full(g.order)
	if g.before != nil {
		if err := g.before(ctx, i); err != nil {
			return err
		}
	}
	event, err := i.write(g)
	if err != nil {
		return err
	}
	output, err := i.output(ctx, g, event)
	if err != nil {
		return err
	}
	if err := g.check(output); err != nil { // SAM itself says nothing of a function's error
		return fmt.Errorf("%w\n%s", err, output)
	}
	if g.after == nil {
		return nil
	}
	return g.after(ctx, i)
}

// invokeTries is how often an event is sent that got no answer.
const invokeTries = 3

// unanswered are SAM's words for that: the engine accepted the event before the container listened, and lost it; or the
// machine had no time for an emulated processor. Who calls a function sends the event again then, and so does this.
func unanswered(output string) bool {
	return strings.Contains(output, "No response from invoke container") || strings.Contains(output, "timed out after")
}

// output invokes a function and gives what SAM prints.
func (i *invocations) output(ctx context.Context, g golden, event string) (output string, err error) {
	log := filepath.Join(i.Dir, fmt.Sprintf("invoke-%s%s.log", g.function, g.order))
	environment, arguments := i.sam("invoke", "--event", event)
	for attempt := 0; attempt == 0 || attempt < invokeTries && unanswered(output); attempt++ {
		if err := stage.Run(ctx, log, i.Root, environment, stage.SAM(i.Root), append(arguments, g.function)...); err != nil {
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

// write writes the event with values in place of their names.
func (i *invocations) write(g golden) (string, error) {
	text, err := os.ReadFile(filepath.Join(i.Root, "e2e", "sam", "testdata", g.file))
	if err != nil {
		return "", err
	}
	path := filepath.Join(i.Dir, g.order+g.file)
	content := os.Expand(string(text), func(name string) string { return i.values[name] })
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// check looks for the answer, and for none of the ways in which an invocation fails.
func (g golden) check(output string) error {
	compact := strings.ReplaceAll(strings.ReplaceAll(output, `":`, `": `), `":  `, `": `)
	for _, bad := range []string{`"errorMessage"`, "timed out", "Error: "} {
		if strings.Contains(output, bad) {
			return fmt.Errorf("there is %q in the output", bad)
		}
	}
	if !strings.Contains(compact, g.answer) && !strings.Contains(output, g.answer) {
		return fmt.Errorf("there is no %s in the output", g.answer)
	}
	return nil
}

// full is an order_id by its end; the key of an SMS is whole.
func (i *invocations) full(key string) string {
	if key == smsKey {
		return key
	}
	return i.values["merchant"] + "_" + key
}

// effectWait is how long what an invocation sets off may take.
const effectWait = 20 * time.Second

// soon repeats a look until it holds.
func soon(ctx context.Context, look func() error) error {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := look()
		if err == nil || time.Since(began) > effectWait || ctx.Err() != nil {
			return err
		}
	}
}

// ask asks one of the partners for JSON, or tells it something.
func ask(ctx context.Context, method, address, body string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := newClient().Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusBadRequest {
		return errors.Join(err, fmt.Errorf("%s %s answers %d: %s", method, address, answer.StatusCode, text))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// effect: it really happened at the operator, once.
func effect(key string) func(context.Context, *invocations) error {
	return func(ctx context.Context, i *invocations) error {
		var effects []any
		err := ask(ctx, http.MethodGet, i.info.SandboxURL+"/sandbox/v1/effects?key="+url.QueryEscape(key), "", &effects)
		if err == nil && len(effects) != 1 {
			err = fmt.Errorf("%d effects under %s at the operator, want one", len(effects), key)
		}
		return err
	}
}

// pays: the purchaser pays, and the operator calls nobody back.
func pays(order string) func(context.Context, *invocations) error {
	return func(ctx context.Context, i *invocations) error {
		body := fmt.Sprintf(`{"key":%q,"status":"successful","silent":true}`, i.full(order))
		return ask(ctx, http.MethodPost, i.info.SandboxURL+"/sandbox/v1/settle", body, nil)
	}
}

// callbackOf finds the address that the gateway signed for the operator.
func callbackOf(key string) func(context.Context, *invocations) error {
	return func(ctx context.Context, i *invocations) error {
		var known []struct {
			CallbackURL string `json:"callback_url"`
		}
		if err := ask(ctx, http.MethodGet, i.info.SandboxURL+"/sandbox/v1/transactions?key="+url.QueryEscape(i.full(key)), "", &known); err != nil {
			return err
		}
		if len(known) != 1 {
			return fmt.Errorf("the operator knows %d transactions under %s", len(known), key)
		}
		parts := strings.Split(known[0].CallbackURL, "/")
		if len(parts) < 3 {
			return fmt.Errorf("%q is no callback address", known[0].CallbackURL)
		}
		i.values["token"], i.values["request_id"] = parts[len(parts)-1], parts[len(parts)-2]
		return nil
	}
}

// toTell: the stream shows that there is something to tell about a payment or an SMS. The image goes into the values.
func toTell(key string) func(context.Context, *invocations) error {
	return func(ctx context.Context, i *invocations) error {
		return soon(ctx, func() error {
			image := i.image(i.full(key))
			if !strings.Contains(string(image), `"outbox"`) {
				return fmt.Errorf("the ledger's stream shows nothing to tell about %s: %s", key, image)
			}
			i.values["image"] = strings.TrimSuffix(strings.TrimPrefix(string(image), "{"), "}") // the golden event has more attributes
			return nil
		})
	}
}

// told: the merchant was told of a payment, once.
func told(order string) func(context.Context, *invocations) error {
	return func(ctx context.Context, i *invocations) error {
		return soon(ctx, func() error {
			var messages []struct{ Body string }
			err := ask(ctx, http.MethodGet, i.info.InboxURL+"/messages?order_id="+i.full(order), "", &messages)
			if err == nil && (len(messages) != 1 || !strings.Contains(messages[0].Body, `"successful"`)) {
				err = fmt.Errorf("the merchant was told of %s: %v, want one success", order, messages)
			}
			return err
		})
	}
}

// settled: the stream shows that a payment has become successful.
func settled(order string) func(context.Context, *invocations) error {
	return func(ctx context.Context, i *invocations) error {
		return soon(ctx, func() error {
			image := i.image(i.full(order))
			if !strings.Contains(string(image), `"successful"`) {
				return fmt.Errorf("the sweep did not settle %s: %s", order, image)
			}
			return nil
		})
	}
}
