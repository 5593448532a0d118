package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// effect is what really happened at the operator.
type effect struct {
	Kind        string    `json:"kind"`
	Key         string    `json:"key"`
	Amount      string    `json:"amount"`
	Currency    string    `json:"currency"`
	At          time.Time `json:"at"`
	CallbackURL string    `json:"callback_url"`
}

// sandboxControl asks the operator's control port.
func (g *target) sandboxControl(method, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		content = nil
	}
	request, err := http.NewRequest(method, g.SandboxURL+"/sandbox/v1/"+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	if token := os.Getenv("SANDBOX_CONTROL_TOKEN"); token != "" { // a deployed sandbox has one
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := exchange(newClient(), request)
	if err != nil {
		return err
	}
	if response.status >= 300 {
		return response.errorf("the operator's control port refuses")
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(response.body, into)
}

// effectsOf lists the effects of a kind under a key; "" for any kind.
func (g *target) effectsOf(key, kind string) ([]effect, error) {
	var all, found []effect
	if err := g.sandboxControl(http.MethodGet, "effects?key="+url.QueryEscape(key), nil, &all); err != nil {
		return nil, err
	}
	for _, e := range all {
		if kind == "" || e.Kind == kind {
			found = append(found, e)
		}
	}
	return found, nil
}

// effects: how often something really happened: effects KEY NUMBER [KIND].
func (s *story) effects(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("effects: KEY NUMBER [charge|payment|sms]")
	}
	kind := ""
	if len(arguments) == 3 {
		kind = arguments[2]
	}
	found, err := s.target.effectsOf(arguments[0], kind)
	if err != nil {
		return err
	}
	if strconv.Itoa(len(found)) != arguments[1] {
		return fmt.Errorf("%d effects under %s, want %s: %+v", len(found), arguments[0], arguments[1], found)
	}
	return nil
}

// operatorTransaction is what the operator knows under a key.
type operatorTransaction struct {
	Kind        string `json:"kind"`
	Key         string `json:"key"`
	State       string `json:"state"`
	OperatorID  string `json:"operator_id"`
	Amount      string `json:"amount"`
	Currency    string `json:"currency"`
	CallbackURL string `json:"callback_url"`
	NotifToken  string `json:"notif_token"`
	Calls       int    `json:"calls"`
}

// transactionAtOperator gives the operator's transaction of a kind under a key, as JSON and decoded.
func (g *target) transactionAtOperator(key, kind string) (json.RawMessage, operatorTransaction, error) {
	var all []json.RawMessage
	if err := g.sandboxControl(http.MethodGet, "transactions?key="+url.QueryEscape(key), nil, &all); err != nil {
		return nil, operatorTransaction{}, err
	}
	for _, text := range all {
		var k operatorTransaction
		if err := json.Unmarshal(text, &k); err != nil {
			return nil, operatorTransaction{}, err
		}
		if kind == "" || k.Kind == kind {
			return text, k, nil
		}
	}
	return nil, operatorTransaction{}, fmt.Errorf("the operator knows no %s under %s", kind, key)
}

// operatorTransaction looks at what the operator knows: operator KEY [KIND] [PATH = TEXT].
func (s *story) operatorTransaction(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("operator: KEY [charge|payment|sms] [PATH = TEXT]")
	}
	key, rest, kind := arguments[0], arguments[1:], ""
	if len(rest) == 1 || len(rest) == 4 {
		kind, rest = rest[0], rest[1:]
	}
	text, _, err := s.target.transactionAtOperator(key, kind)
	if err != nil {
		return err
	}
	s.record(observation{source: "the operator about " + key, body: text})
	if len(rest) == 0 {
		return nil
	}
	return s.json(rest)
}

// scriptResponses says how the operator answers the next calls under a key: script KEY [-kind getstatus] cut 503 ok.
func (s *story) scriptResponses(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("script: KEY [-kind KIND] WORD...")
	}
	body := map[string]any{"key": arguments[0]}
	calls := arguments[1:]
	if calls[0] == "-kind" && len(calls) > 2 {
		body["kind"], calls = calls[1], calls[2:]
	}
	body["calls"] = calls
	return s.target.sandboxControl(http.MethodPost, "script", body, nil)
}

// completePayment ends a payment at the operator: settle ORDER STATUS [force] [silent].
func (s *story) completePayment(arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("settle: ORDER STATUS [force] [silent]")
	}
	body := map[string]any{"key": arguments[0], "status": arguments[1]}
	for _, how := range arguments[2:] {
		body[how] = true
	}
	return s.target.sandboxControl(http.MethodPost, "settle", body, nil)
}

// callback posts a callback as the operator would: callback KEY [-kind K] [-status S] [-times N] [-forged yes] [-set a=b]
// [-drop a] [-body file]. It looks at one of the answers; parallel ones must have the same status.
func (s *story) callback(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("callback: KEY [options]")
	}
	o, err := parseOptions(arguments[1:])
	if err != nil {
		return err
	}
	_, k, err := s.target.transactionAtOperator(arguments[0], o.get("kind", ""))
	if err != nil {
		return err
	}
	address := k.CallbackURL
	if o.get("forged", "") != "" { // the middle of the token: the last characters may hold no bit
		at := strings.LastIndex(address, "/") + 5
		other := "A"
		if address[at:at+1] == other {
			other = "B"
		}
		address = address[:at] + other + address[at+1:]
	}
	a := newRequestBuilder(merchantCredentials{}, http.MethodPost, address)
	delete(a.header, "Authorization")
	a.body = k.callbackBody(o.get("status", "successful"))
	if err := a.applyOptions(s, o, "kind", "status", "times", "forged"); err != nil {
		return err
	}
	times, err := strconv.Atoi(o.get("times", "1"))
	if err != nil {
		return err
	}
	return s.sendConcurrently(a, times)
}

// callbackBody is what the operator would say.
func (k operatorTransaction) callbackBody(status string) map[string]any {
	if k.Kind == "sms" {
		return map[string]any{"deliveryInfoNotification": map[string]any{
			"deliveryInfo": map[string]any{"address": "acr:X-Operator-ISE2", "deliveryStatus": status},
		}}
	}
	body := map[string]any{
		"meta": map[string]any{"type": "payment-notif", "source": "sandbox", "channel": "ussd"}, "status": status,
		"amount": k.Amount, "order-id": k.Key, "currency": k.Currency, "Transaction-id": k.OperatorID,
	}
	if k.NotifToken != "" {
		body["notif_token"] = k.NotifToken
	}
	return body
}

// sendConcurrently sends equal requests side by side.
func (s *story) sendConcurrently(a *requestBuilder, times int) error {
	responses := make([]observation, times)
	errs := make([]error, times)
	var group sync.WaitGroup
	for i := range times {
		group.Go(func() {
			request, err := a.build(s.target.BaseURL)
			if err == nil {
				responses[i], err = exchange(s.client, request)
			}
			errs[i] = err
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, response := range responses {
		if response.status != responses[0].status {
			return response.errorf("one of %d equal requests: %d, another %d", times, response.status, responses[0].status)
		}
	}
	s.record(responses[0])
	return nil
}

// paymentPage is a purchaser on the payment page: page confirm [-msisdn N] [-pin P], or page cancel. The PIN is a fresh one of
// the sandbox. It looks at the form, and at the answer to it.
func (s *story) paymentPage(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("page: confirm or cancel")
	}
	o, err := parseOptions(arguments[1:])
	if err != nil {
		return err
	}
	if s.pageURL == "" {
		return errors.New("page: no payment was answered with a payment_url")
	}
	request, err := http.NewRequest(http.MethodGet, s.pageURL, nil)
	if err != nil {
		return err
	}
	form, err := exchange(s.client, request)
	if err != nil {
		return err
	}
	for _, part := range []string{"<form", `name="msisdn"`, `name="pin"`, `name="action" value="confirm"`, `name="action" value="cancel"`} {
		if form.status != http.StatusOK || !bytes.Contains(form.body, []byte(part)) {
			return form.errorf("the page has no %s", part)
		}
	}
	return s.fillForm(arguments[0], o)
}

// fillForm posts the form.
func (s *story) fillForm(action string, o options) error {
	number := o.get("msisdn", successfulMSISDN)
	var issued struct {
		PIN string `json:"pin"`
	}
	if err := s.target.sandboxControl(http.MethodPost, "tests", map[string]string{"msisdn": number}, &issued); err != nil {
		return err
	}
	values := url.Values{"msisdn": {number}, "pin": {o.get("pin", issued.PIN)}, "action": {action}}
	request, err := http.NewRequest(http.MethodPost, s.pageURL, strings.NewReader(values.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := exchange(s.client, request)
	if err != nil {
		return err
	}
	s.record(response)
	return nil
}
