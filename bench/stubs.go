package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// operatorStub stands in for an operator: every call succeeds after a fixed delay.
type operatorStub struct {
	delay time.Duration
	calls atomic.Int64
}

// ServeHTTP answers a charge, a payment or an SMS.
func (p *operatorStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	p.calls.Add(1)
	time.Sleep(p.delay)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(successResponse(r, body))
}

// successResponse is the operator's answer as the specification writes it.
func successResponse(r *http.Request, body []byte) []byte {
	var response any
	switch {
	case strings.HasPrefix(r.URL.Path, "/payment/"):
		response = map[string]any{"amountTransaction": map[string]string{
			"serverReferenceCode": "operator-1", "transactionOperationStatus": "Charged",
		}}
	case strings.HasPrefix(r.URL.Path, "/smsmessaging/"):
		response = map[string]any{"outboundSMSMessageRequest": map[string]string{
			"resourceURL": "http://operator/requests/1/deliveryInfos",
		}}
	case r.Header.Get("channel") == "web":
		response = map[string]any{
			"status": 201, "message": "OK", "pay_token": "token", "payment_url": "http://127.0.0.1/page",
			"notif_token": "notification", "state": "state",
		}
	default:
		var order struct {
			ID string `json:"order_id"`
		}
		_ = json.Unmarshal(body, &order) // an empty id is answered as such, and found out
		response = map[string]any{"order-id": order.ID, "status": "pending", "Transaction-id": "operator-1"}
	}
	text, _ := json.Marshal(response) // maps of plain values
	return text
}

// secretsStub stands in for Secrets Manager: it knows the secrets by name and answers after a fixed delay.
type secretsStub struct {
	delay   time.Duration
	secrets map[string]string
}

// ServeHTTP answers GetSecretValue.
func (v *secretsStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ SecretId string } //nolint:staticcheck // ST1003: the service's spelling
	err := json.NewDecoder(r.Body).Decode(&in)
	value, known := v.secrets[in.SecretId]
	time.Sleep(v.delay)
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err != nil || !known {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"ResourceNotFoundException"}`)
		return
	}
	response, _ := json.Marshal(map[string]string{"Name": in.SecretId, "SecretString": value, "VersionId": "1"}) // texts
	_, _ = w.Write(response)
}
