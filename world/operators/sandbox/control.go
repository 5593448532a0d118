package sandbox

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/world/operators/kit"
)

// controlPort serves the control port, except PINs, slots and the fault injection.
type controlPort struct{ *Sandbox }

func respondUnknownControlPath(*kit.Call) kit.Response {
	return kit.Refuse(http.StatusNotFound, "the control port has no such method and path")
}

func wantedKey(c *kit.Call) string { return c.Request.URL.Query().Get("key") }

// listEffects lists the effects under ?key=, in either form of the key; without a key all effects.
func (s controlPort) listEffects(c *kit.Call, _ struct{}) kit.Response {
	effects := []Effect{}
	for _, t := range s.Matching(wantedKey(c)) {
		for _, e := range s.effectsOf(of(t)) {
			e.Operator = "" // all are the sandbox's
			effects = append(effects, e)
		}
	}
	return jsonResponse(http.StatusOK, effects)
}

// writeStatement writes the money that moved as an operator's statement, of the UTC day ?day= or of all days. The
// sandbox replaces several platforms: ?operator= selects the payments to one mno-name. A charge names none, and counts
// as the sandbox's own.
func (s controlPort) writeStatement(c *kit.Call, _ struct{}) kit.Response {
	var rows []kit.StatementRow
	wanted := c.Request.URL.Query().Get("operator")
	for _, t := range s.Matching("") {
		name := ownOperator
		if o := of(t); o.Payment != nil {
			name = o.Payment.Operator
		}
		if wanted != "" && wanted != name {
			continue
		}
		for _, e := range s.effectsOf(of(t)) {
			rows = append(rows, kit.StatementRow{Effect: e, Reference: t.Reference, MSISDN: t.MSISDN})
		}
	}
	return kit.StatementResponse(c, rows, statementAmount)
}

// statementAmount is an effect's amount in its currency. A charge of some countries counts minor units.
func statementAmount(e Effect) string {
	for _, country := range market.All() {
		if e.Kind != kindCharge || country.Currency != e.Currency || !country.ChargesInMinorUnits {
			continue
		}
		if units, err := money.ParseMinorUnits(e.Amount); err == nil {
			return money.Format(units, country.Exponent)
		}
	}
	return e.Amount
}

// effectsOf returns a transaction's effects. A payment whose page was not confirmed in time has none.
func (s controlPort) effectsOf(t transaction) []Effect {
	if t.Payment != nil && t.Payment.Channel == "web" && s.paymentExpired(t) {
		return nil
	}
	return t.Effects
}

// transactionView is a transaction at the control port.
type transactionView struct {
	Kind        string          `json:"kind"`
	Key         string          `json:"key"`
	State       string          `json:"state"`
	OperatorID  string          `json:"operator_id"`
	Amount      string          `json:"amount"`
	Currency    string          `json:"currency"`
	Channel     string          `json:"channel,omitempty"`
	CallbackURL string          `json:"callback_url,omitempty"`
	PaymentURL  string          `json:"payment_url,omitempty"`
	NotifToken  string          `json:"notif_token,omitempty"`
	CreatedAt   time.Time       `json:"created_at,omitzero"`
	Calls       int             `json:"calls"`
	CallLog     []loggedCall    `json:"call_log"`
	Lookups     int             `json:"lookups"`
	Callbacks   []*kit.Callback `json:"callbacks"`
	Effects     int             `json:"effects"`
}

// listTransactions lists the transactions under ?key=, also pending and never applied ones.
func (s controlPort) listTransactions(c *kit.Call, _ struct{}) kit.Response {
	views := []transactionView{}
	for _, t := range s.Matching(wantedKey(c)) {
		views = append(views, s.transactionViewOf(of(t)))
	}
	return jsonResponse(http.StatusOK, views)
}

func (s controlPort) transactionViewOf(t transaction) transactionView {
	v := transactionView{
		Kind: t.Kind, Key: t.Key, State: t.Status, OperatorID: t.Reference, Amount: t.Amount, Currency: t.Currency,
		CallbackURL: t.CallbackURL, CreatedAt: t.CreatedAt,
		Calls: t.CallCount, CallLog: append([]loggedCall{}, t.Calls...), Lookups: t.Lookups,
		Callbacks: append([]*kit.Callback{}, t.Callbacks...), Effects: len(s.effectsOf(t)),
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
func (s controlPort) setFinalStatus(_ *kit.Call, v finalStatusRequest) kit.Response {
	results := map[string]kit.Result{successful: kit.Paid, failed: kit.Refused, cancelled: cancelled}
	result, known := results[v.Status]
	if !known {
		return kit.Refuse(http.StatusBadRequest, "status is not successful, failed or cancelled")
	}
	t, found := s.find(kindPayment, v.Key)
	if !found || t.Status == absent || t.Status == received || t.Status == refused {
		return kit.Refuse(http.StatusNotFound, "no accepted payment has this order_id")
	}
	reports := []kit.Report{{Result: result}}
	if v.NoCallback {
		reports = nil
	}
	if t.Status == pending || v.Force {
		s.finalizePayment(t, kit.Outcome{Result: result, Reports: []kit.Report{}})
		t.Payment.StatusDescription = cmp.Or(v.Description, "Payment is "+v.Status)
	}
	s.report(t, reports)
	s.journal.saveTransaction(t)
	return jsonResponse(http.StatusOK, s.transactionViewOf(t))
}

// script lists the modes of the next calls under a key, one for each call.
type script struct {
	Key   string   `json:"key"`
	Kind  string   `json:"kind,omitempty"` // charge, payment, sms or getstatus; "": charge, payment and sms
	Calls []string `json:"calls"`
}

// maxScripts limits the scripts that wait, and the calls of one.
const maxScripts = 1000

func (s controlPort) addScript(_ *kit.Call, v script) kit.Response {
	kinds := []string{"", kindCharge, kindPayment, kindSMS, kindLookup}
	switch {
	case v.Key == "" || len(v.Calls) == 0 || len(v.Calls) > maxScripts || !slices.Contains(kinds, v.Kind):
		return kit.Refuse(http.StatusBadRequest,
			"a script has a key, a kind (charge, payment, sms, getstatus or none) and 1 to 1000 calls")
	case len(s.Scripts()) >= maxScripts:
		return kit.Refuse(http.StatusConflict, "too many scripts: delete some")
	}
	if err := s.AddScript(kit.Script{Key: v.Key, Operation: v.Kind, Calls: slices.Clone(v.Calls)}); err != nil {
		return kit.Refuse(http.StatusBadRequest, "%v", err)
	}
	return jsonResponse(http.StatusCreated, v)
}

func (s controlPort) listScripts(*kit.Call, struct{}) kit.Response {
	scripts := []script{}
	for _, v := range s.Scripts() {
		scripts = append(scripts, script{v.Key, v.Operation, v.Calls})
	}
	return jsonResponse(http.StatusOK, scripts)
}

// deleteScripts deletes the scripts of ?key=, or all of them.
func (s controlPort) deleteScripts(c *kit.Call, _ struct{}) kit.Response {
	s.DeleteScripts(wantedKey(c))
	return kit.Response{Status: http.StatusNoContent}
}
