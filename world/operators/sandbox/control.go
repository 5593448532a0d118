package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// handleControl makes a handler of the control port from f, which runs under the lock. It reads the JSON body of a POST
// or a PUT into T. The body of a POST may be absent; a PUT needs an object, because it replaces the earlier one.
func handleControl[T any](s *Sandbox, f func(r *http.Request, body T) response) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body T
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
			if err == nil {
				err = decodeControlBody(bytes.Trim(raw, " \t\r\n"), r.Method == http.MethodPut, &body)
			}
			if err != nil {
				controlError(http.StatusBadRequest, "body: "+err.Error()).write(w)
				return
			}
		}
		s.mu.Lock()
		result := f(r, body)
		s.mu.Unlock()
		result.write(w)
	}
}

// decodeControlBody reads exactly one JSON value.
func decodeControlBody(raw []byte, required bool, v any) error {
	if required && !bytes.HasPrefix(raw, []byte("{")) {
		return errors.New("a JSON object is required")
	}
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text follows the JSON value")
	}
	return nil
}

func controlError(status int, message string) response {
	return jsonResponse(status, map[string]string{"error": message})
}

func respondUnknownControlPath(w http.ResponseWriter, _ *http.Request) {
	controlError(http.StatusNotFound, "the control port has no such method and path").write(w)
}

// listEffects lists the effects under ?key=, in either form of the key; without a key all effects.
func (s *Sandbox) listEffects(r *http.Request, _ struct{}) response {
	effects := []Effect{}
	for _, t := range s.transactions.list(r.URL.Query().Get("key")) {
		effects = append(effects, s.effectsOf(t)...)
	}
	return jsonResponse(http.StatusOK, effects)
}

// effectsOf returns a transaction's effects. A payment whose page was not confirmed in time has none.
func (s *Sandbox) effectsOf(t *transaction) []Effect {
	if t.Payment != nil && t.Payment.Channel == "web" && s.paymentExpired(t) {
		return nil
	}
	return t.Effects
}

// transactionView is a transaction at the control port.
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

// listTransactions lists the transactions under ?key=, also pending and never applied ones.
func (s *Sandbox) listTransactions(r *http.Request, _ struct{}) response {
	views := []transactionView{}
	for _, t := range s.transactions.list(r.URL.Query().Get("key")) {
		views = append(views, s.transactionViewOf(t))
	}
	return jsonResponse(http.StatusOK, views)
}

func (s *Sandbox) transactionViewOf(t *transaction) transactionView {
	v := transactionView{
		Kind: t.Kind, Key: t.Key, State: t.State, OperatorID: t.OperatorID, Amount: t.Amount, Currency: t.Currency,
		CallbackURL: t.CallbackURL, CreatedAt: t.CreatedAt,
		Calls: t.CallCount, CallLog: append([]loggedCall{}, t.Calls...), Lookups: t.Lookups,
		Callbacks: append([]*callback{}, t.Callbacks...), Effects: len(s.effectsOf(t)),
	}
	if t.Payment != nil {
		v.Channel, v.NotifToken, v.PaymentURL = t.Payment.Channel, t.Payment.NotifToken, s.paymentURL(t.Payment)
	}
	return v
}

// finalStatusRequest is the body of `POST /sandbox/v1/settle`.
type finalStatusRequest struct {
	Key    string `json:"key"`    // an order_id
	Status string `json:"status"` // successful, failed or cancelled
	// Force changes a status that is final already, as no operator should. Without it only the callback contradicts.
	Force bool `json:"force"`
	// NoCallback sends no callback, so that only getStatus reports the status.
	NoCallback bool `json:"silent"`
	// Description is the statusDescription, from which the gateway reads the reason of a failure; "" for "Payment is"
	// and the status.
	Description string `json:"description"`
}

// setFinalStatus finalizes a pending payment now, independently of its digits. For a payment with a final
// status it sends a contradicting callback.
func (s *Sandbox) setFinalStatus(_ *http.Request, v finalStatusRequest) response {
	if v.Status != successful && v.Status != failed && v.Status != cancelled {
		return controlError(http.StatusBadRequest, "status is not successful, failed or cancelled")
	}
	t := s.transactions.find(kindPayment, v.Key)
	if t == nil || t.State == absent || t.State == received || t.State == refused {
		return controlError(http.StatusNotFound, "no accepted payment has this order_id")
	}
	statuses := []string{v.Status}
	if v.NoCallback {
		statuses = nil
	}
	if t.State == pending || v.Force {
		s.finalizePayment(t, behaviour{
			FinalStatus: v.Status, StatusDescription: cmp.Or(v.Description, "Payment is "+v.Status),
			CallbackStatuses: statuses,
		})
	} else {
		s.queueCallbacks(t, statuses, 0)
	}
	s.saveTransaction(t)
	return jsonResponse(http.StatusOK, s.transactionViewOf(t))
}
