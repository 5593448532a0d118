package e2e

import (
	"bytes"
	"context"
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

	"mobilegateway/e2e/harness"
	"mobilegateway/local"
)

// effect is something the operator applied: a charge, a payment or an SMS.
type effect struct {
	Kind        string    `json:"kind"`
	Key         string    `json:"key"`
	Amount      string    `json:"amount"`
	Currency    string    `json:"currency"`
	At          time.Time `json:"at"`
	CallbackURL string    `json:"callback_url"`
}

// sandboxControl calls the sandbox's control port. body and into may be nil.
func (g *target) sandboxControl(method, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		content = nil
	}
	header := http.Header{}
	if token := os.Getenv("SANDBOX_CONTROL_TOKEN"); token != "" { // a deployed sandbox requires it
		header.Set("Authorization", "Bearer "+token)
	}
	address := g.SandboxURL + "/sandbox/v1/" + path
	text, _, err := harness.Call(context.Background(), method, address, string(content), header)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// effectsOf lists the effects under a key, of one kind or, with "", of all.
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

// effects checks the number of effects: effects KEY NUMBER [KIND].
func (s *story) effects(arguments []string) error {
	kind := ""
	if len(arguments) == 3 {
		kind = arguments[2]
	}
	found, err := s.target.effectsOf(arguments[0], kind)
	if err != nil {
		return err
	}
	if strconv.Itoa(len(found)) != arguments[1] {
		return fmt.Errorf("%d effects at the operator under %s, want %s: %+v", len(found), arguments[0], arguments[1],
			found)
	}
	return nil
}

// operatorTransaction is a transaction as the sandbox's control port reports it.
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

// transactionAtOperator returns the operator's transaction of a kind under a key, as JSON and decoded.
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
	return nil, operatorTransaction{}, fmt.Errorf("the operator has no %s transaction under %s", kind, key)
}

// operatorTransaction reads a transaction at the operator for the checks: operator-transaction KEY [KIND] [PATH =
// TEXT].
func (s *story) operatorTransaction(arguments []string) error {
	key, rest, kind := arguments[0], arguments[1:], ""
	if len(rest) == 1 || len(rest) == 4 {
		kind, rest = rest[0], rest[1:]
	}
	text, _, err := s.target.transactionAtOperator(key, kind)
	if err != nil {
		return err
	}
	s.record(observation{source: "the operator's transaction " + key, body: text})
	if len(rest) == 0 {
		return nil
	}
	return s.json(rest)
}

// operatorResponses sets the operator's next responses under a key: operator-responses KEY [-kind getstatus] cut 503
// ok.
func (s *story) operatorResponses(arguments []string) error {
	body := map[string]any{"key": arguments[0]}
	calls := arguments[1:]
	if calls[0] == "-kind" && len(calls) > 2 {
		body["kind"], calls = calls[1], calls[2:]
	}
	body["calls"] = calls
	return s.target.sandboxControl(http.MethodPost, "script", body, nil)
}

// completePayment ends a payment at the operator: complete-payment ORDER STATUS [force] [silent].
func (s *story) completePayment(arguments []string) error {
	body := map[string]any{"key": arguments[0], "status": arguments[1]}
	for _, how := range arguments[2:] {
		body[how] = true
	}
	return s.target.sandboxControl(http.MethodPost, "settle", body, nil)
}

// callback sends a callback as the operator would: callback KEY [-kind K] [-status S] [-times N] [-forged yes] [-set
// a=b] [-drop a] [-body file]. Parallel callbacks must all get the same status.
func (s *story) callback(arguments []string) error {
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
	a := newRequestBuilder(local.MerchantCredentials{}, http.MethodPost, address)
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

// callbackBody returns the body that the operator would send.
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

// sendConcurrently sends equal requests in parallel. All responses must have the same status.
func (s *story) sendConcurrently(a *requestBuilder, times int) error {
	responses, err := s.exchangeInParallel(a, times)
	if err != nil {
		return err
	}
	for _, response := range responses {
		if response.status != responses[0].status {
			return response.errorf("%d equal requests got different statuses: %d and %d", times, response.status,
				responses[0].status)
		}
	}
	s.record(responses[0])
	return nil
}

// exchangeInParallel sends a request several times in parallel and returns all responses.
func (s *story) exchangeInParallel(a *requestBuilder, times int) ([]observation, error) {
	responses, errs := make([]observation, times), make([]error, times)
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
	return responses, errors.Join(errs...)
}

// paymentPage uses the payment page as a user would: payment-page confirm [-msisdn N] [-pin P], or payment-page
// cancel. Without -pin it uses a PIN that the sandbox has just issued.
func (s *story) paymentPage(arguments []string) error {
	o, err := parseOptions(arguments[1:])
	if err != nil {
		return err
	}
	if s.pageURL == "" {
		return errors.New("payment-page: no response had a payment_url")
	}
	request, err := http.NewRequest(http.MethodGet, s.pageURL, nil)
	if err != nil {
		return err
	}
	form, err := exchange(s.client, request)
	if err != nil {
		return err
	}
	for _, part := range []string{"<form", `name="msisdn"`, `name="pin"`, `name="action" value="confirm"`,
		`name="action" value="cancel"`} {
		if form.status != http.StatusOK || !bytes.Contains(form.body, []byte(part)) {
			return form.errorf("the page has no %s", part)
		}
	}
	return s.submitForm(arguments[0], o)
}

// submitForm sends the form.
func (s *story) submitForm(action string, o options) error {
	number := o.get("msisdn", successfulMSISDN)
	var issued struct {
		PIN string `json:"pin"`
	}
	if err := s.target.sandboxControl(http.MethodPost, "tests", map[string]string{"msisdn": number},
		&issued); err != nil {
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
