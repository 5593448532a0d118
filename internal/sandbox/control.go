package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// The control port is for tests and people. Without ControlTokens it asks for no credentials: the sandbox then listens on
// the local machine alone.

// readControlBody reads a JSON body, one value and no more; false means that the fault was answered. The body is optional but
// with PUT, which replaces what is there: nothing, or null, would replace it by nothing unasked.
func readControlBody(w http.ResponseWriter, r *http.Request, v any) bool {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err == nil {
		err = decodeControlBody(bytes.Trim(raw, " \t\r\n"), r.Method == http.MethodPut, v)
	}
	if err != nil {
		writeControlError(w, http.StatusBadRequest, "body: "+err.Error())
		return false
	}
	return true
}

func decodeControlBody(raw []byte, required bool, v any) error {
	if required && !bytes.HasPrefix(raw, []byte("{")) {
		return errors.New("a JSON object is needed")
	}
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(v)
	if err != nil {
		return err
	}
	_, err = decoder.Token()
	if !errors.Is(err, io.EOF) {
		return errors.New("something stands behind the JSON value")
	}
	return nil
}

func writeControlError(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]string{"error": message})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	response{Status: status, ContentType: jsonType, Body: encode(v)}.write(w)
}

// getEffects lists what really happened under ?key=, in either form of the key; everything without one.
func (s *Sandbox) getEffects(w http.ResponseWriter, r *http.Request) {
	effects := []Effect{}
	s.mu.Lock()
	for _, t := range s.transactions.findByKey(r.URL.Query().Get("key")) {
		effects = append(effects, s.effectsOf(t)...)
	}
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, effects)
}

// effectsOf are a transaction's effects: none of a payment whose page nobody confirmed in time.
func (s *Sandbox) effectsOf(t *transaction) []Effect {
	if t.Payment != nil && t.Payment.Channel == "web" && s.paymentExpired(t) {
		return nil
	}
	return t.Effects
}

// transactionView is what the control port tells of a transaction.
type transactionView struct {
	Kind        string       `json:"kind"`
	Key         string       `json:"key"`
	State       string       `json:"state"`
	OperatorID  string       `json:"operator_id"`
	Amount      string       `json:"amount"`
	Currency    string       `json:"currency"`
	Channel     string       `json:"channel,omitempty"`
	CallbackURL string       `json:"callback_url,omitempty"`
	PaymentURL  string       `json:"payment_url,omitempty"`
	NotifToken  string       `json:"notif_token,omitempty"`
	CreatedAt   time.Time    `json:"created_at,omitzero"`
	Calls       int          `json:"calls"`
	CallLog     []loggedCall `json:"call_log"`
	Lookups     int          `json:"lookups"`
	Callbacks   []*callback  `json:"callbacks"`
	Effects     int          `json:"effects"`
}

// getTransactions lists what the operator knows under ?key=, pending and never applied ones too: the state, each call
// with its answer, and each callback with its attempts.
func (s *Sandbox) getTransactions(w http.ResponseWriter, r *http.Request) {
	views := []transactionView{}
	s.mu.Lock()
	for _, t := range s.transactions.findByKey(r.URL.Query().Get("key")) {
		views = append(views, s.transactionViewOf(t))
	}
	body := encode(views) // under the lock, for it reads callbacks that may change; written without it
	s.mu.Unlock()
	response{Status: http.StatusOK, ContentType: jsonType, Body: body}.write(w)
}

func (s *Sandbox) transactionViewOf(t *transaction) transactionView {
	v := transactionView{
		Kind: t.Kind, Key: t.Key, State: t.State, OperatorID: t.OperatorID, Amount: t.Amount, Currency: t.Currency,
		CallbackURL: t.CallbackURL, CreatedAt: t.CreatedAt, Calls: t.CallCount, CallLog: append([]loggedCall{}, t.Calls...),
		Lookups: t.Lookups, Callbacks: append([]*callback{}, t.Callbacks...), Effects: len(s.effectsOf(t)),
	}
	if t.Payment != nil {
		v.Channel = t.Payment.Channel
		v.NotifToken = t.Payment.NotifToken
	}
	if t.Payment != nil && t.Payment.PayToken != "" {
		v.PaymentURL = s.config.BaseURL + "/pay/" + t.Payment.PayToken
	}
	return v
}

// finalStatusRequest is the body of POST /sandbox/v1/settle.
type finalStatusRequest struct {
	Key    string `json:"key"`    // an order_id
	Status string `json:"status"` // successful, failed or cancelled
	// Force changes a status that is final already, as no operator should; otherwise only the callback contradicts.
	Force bool `json:"force"`
	// NoCallback sends no callback: only getStatus tells.
	NoCallback bool `json:"silent"`
}

// postFinalStatus gives a pending payment its final status now, whatever its digits say. A payment that has one gets a
// callback that contradicts it.
func (s *Sandbox) postFinalStatus(w http.ResponseWriter, r *http.Request) {
	var v finalStatusRequest
	if !readControlBody(w, r, &v) {
		return
	}
	if v.Status != successful && v.Status != failed && v.Status != cancelled {
		writeControlError(w, http.StatusBadRequest, "status is successful, failed or cancelled")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.transactions.byKey[[2]string{kindPayment, v.Key}]
	if t == nil || t.State == absent || t.State == received || t.State == refused {
		writeControlError(w, http.StatusNotFound, "no accepted payment of that order_id")
		return
	}
	statuses := []string{v.Status}
	if v.NoCallback {
		statuses = nil
	}
	if t.State == pending || v.Force {
		s.finalizePayment(t, behaviour{FinalStatus: v.Status, StatusDescription: "Payment is " + v.Status, CallbackStatuses: statuses})
	} else {
		s.queueCallbacks(t, statuses, 0)
	}
	s.saveTransaction(t)
	writeJSON(w, http.StatusOK, s.transactionViewOf(t))
}
