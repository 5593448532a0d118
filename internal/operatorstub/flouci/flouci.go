// Package flouci is a stub of Flouci's payment API, version 2, for tests. Every request makes a new payment with a page
// at /c/{payment_id}, which the payer confirms with a phone number: its last four digits select the outcome. The body
// of its callback is the payment_id, because Flouci documents no form. The quirk session_3s ends pages soon.
package flouci

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mobilegateway/internal/operatorstub"
)

const (
	payment       = "payment"
	decisionDelay = time.Second
	minDigits     = 8 // of a payer's number
)

// Credentials are those that the stub accepts.
type Credentials struct {
	PublicKey, PrivateKey string
	// PageURL is the public address of the stub with its prefix, without a slash at the end.
	PageURL string
}

// Stub is one Flouci platform.
type Stub struct {
	platform    *operatorstub.Platform
	credentials Credentials
}

// New makes a stub.
func New(config operatorstub.Config, credentials Credentials) *Stub {
	faults := map[string]operatorstub.Response{}
	for _, status := range []int{400, 401, 403, 429} {
		faults[strconv.Itoa(status)] = refuse(status)
	}
	spec := operatorstub.Spec{Operator: "flouci", Faults: faults, Quirks: []string{"session_3s"}}
	return &Stub{operatorstub.New(config, spec), credentials}
}

// Handler serves the stub from the root.
func (s *Stub) Handler() http.Handler {
	byID := func(r *http.Request, _ []byte) operatorstub.Keys { return s.keys(r.PathValue("id")) }
	return s.platform.Handler(
		operatorstub.Operation{
			Pattern: "POST /api/v2/generate_payment", Name: "create", Identify: identify, Serve: s.create,
		},
		operatorstub.Operation{
			Pattern: "GET /api/v2/verify_payment/{id}", Name: "status", Identify: byID, Serve: s.status,
		},
		operatorstub.Operation{Pattern: "GET /c/{id}", Name: "page", Identify: byID, Serve: s.page},
		operatorstub.Operation{Pattern: "POST /c/{id}", Name: "confirm", Identify: s.identifyPayer, Serve: s.confirm},
	)
}

func refuse(status int) operatorstub.Response {
	result := map[string]any{"status": status, "message": http.StatusText(status)}
	return operatorstub.JSON(status, map[string]any{"result": result})
}

func (s *Stub) isAuthorized(c *operatorstub.Call) bool {
	return c.Request.Header.Get("Authorization") == "Bearer "+s.credentials.PublicKey+":"+s.credentials.PrivateKey
}

type request struct {
	Amount     string `json:"amount"`
	SuccessURL string `json:"success_link"`
	FailURL    string `json:"fail_link"`
	Webhook    string `json:"webhook"`
	Tracking   string `json:"developer_tracking_id"`
	AcceptCard bool   `json:"accept_card"`
	Seconds    int    `json:"session_timeout_secs"`
}

func identify(_ *http.Request, body []byte) operatorstub.Keys {
	var r request
	_ = json.Unmarshal(body, &r) // create refuses it
	return operatorstub.Keys{Key: r.Tracking}
}

func (s *Stub) create(c *operatorstub.Call) operatorstub.Response {
	var r request
	isValid := json.Unmarshal(c.Body, &r) == nil && operatorstub.IsAmount(r.Amount) &&
		!strings.Contains(r.Amount, ".") && r.SuccessURL != "" && r.FailURL != "" && r.Seconds > 0
	switch {
	case !s.isAuthorized(c):
		return refuse(http.StatusUnauthorized)
	case !isValid:
		return refuse(http.StatusBadRequest)
	}
	life := time.Duration(r.Seconds) * time.Second
	if s.platform.Quirk("session_3s") {
		life = 3 * time.Second
	}
	t := s.platform.Add(&operatorstub.Transaction{
		Operation: payment, Key: r.Tracking, Amount: r.Amount, Currency: "TND", CallbackURL: r.Webhook,
		Status: "PENDING", Reference: s.platform.NewID(11), EndsAt: s.platform.Now().Add(life),
		Details: map[string]string{"success_link": r.SuccessURL, "fail_link": r.FailURL},
	})
	return operatorstub.JSON(http.StatusOK, map[string]any{
		"name": "developers", "code": 0, "version": "v2", "result": map[string]any{
			"success": true, "payment_id": t.Reference, "link": s.credentials.PageURL + "/c/" + t.Reference,
			"developer_tracking_id": t.Key,
		},
	})
}

// find returns a payment by its id, or nil. It expires one whose time is over.
func (s *Stub) find(id string) *operatorstub.Transaction {
	t := s.platform.First(func(t *operatorstub.Transaction) bool { return t.Reference == id })
	if t != nil && t.Status == "PENDING" && t.Result == operatorstub.Undecided && t.MSISDN == "" &&
		!s.platform.Now().Before(t.EndsAt) {
		t.Status = "EXPIRED"
	}
	return t
}

func (s *Stub) keys(id string) operatorstub.Keys {
	if t := s.find(id); t != nil {
		return operatorstub.Keys{Key: t.Key}
	}
	return operatorstub.Keys{}
}

func (s *Stub) status(c *operatorstub.Call) operatorstub.Response {
	t := s.find(c.Request.PathValue("id"))
	switch {
	case !s.isAuthorized(c):
		return refuse(http.StatusUnauthorized)
	case t == nil:
		return refuse(http.StatusNotFound)
	}
	return operatorstub.JSON(http.StatusOK, map[string]any{
		"success": true, "status_code": http.StatusOK, "result": map[string]any{
			"type": "wallet", "amount": json.Number(t.Amount), "status": t.Status, "details": map[string]any{},
			"developer_tracking_id": t.Key,
		},
	})
}

// payer reads the form of the page.
func payer(body []byte) (action, msisdn string) {
	form, _ := url.ParseQuery(string(body))
	msisdn = strings.TrimPrefix(strings.ReplaceAll(form.Get("msisdn"), " ", ""), "+")
	if len(msisdn) < minDigits || strings.Trim(msisdn, "0123456789") != "" {
		msisdn = ""
	}
	return form.Get("action"), msisdn
}

func (s *Stub) identifyPayer(r *http.Request, body []byte) operatorstub.Keys {
	keys := s.keys(r.PathValue("id"))
	if action, msisdn := payer(body); action == "confirm" {
		keys.MSISDN = msisdn
	}
	return keys
}

func (s *Stub) page(c *operatorstub.Call) operatorstub.Response {
	t := s.find(c.Request.PathValue("id"))
	if t == nil {
		return operatorstub.HTML(http.StatusNotFound, "Unknown payment")
	}
	return show(t, http.StatusOK)
}

func show(t *operatorstub.Transaction, status int) operatorstub.Response {
	page := operatorstub.Page{
		Title: "Pay with Flouci", Amount: t.Amount + " thousandths of", Currency: t.Currency, OrderID: t.Key,
	}
	if t.Status != "PENDING" || t.MSISDN != "" {
		page.Done, page.Notice = true, "This payment is "+strings.ToLower(t.Status)+"."
	}
	return page.Render(status)
}

// confirm serves the buttons of the page.
func (s *Stub) confirm(c *operatorstub.Call) operatorstub.Response {
	t := s.find(c.Request.PathValue("id"))
	if t == nil || t.Status != "PENDING" || t.MSISDN != "" {
		return s.page(c)
	}
	action, msisdn := payer(c.Body)
	switch {
	case action == "cancel":
		t.Outcome = operatorstub.Outcome{Result: operatorstub.Refused}
	case action == "close":
		return operatorstub.HTML(http.StatusOK, "You may close this window.")
	case action != "confirm" || msisdn == "":
		return show(t, http.StatusBadRequest)
	default:
		t.MSISDN, t.Outcome = msisdn, s.platform.OutcomeFor(msisdn)
	}
	address := t.Details["success_link"]
	if r := t.Outcome.Result; r != operatorstub.Paid && r != operatorstub.Undecided {
		address = t.Details["fail_link"]
	}
	response := operatorstub.Response{Status: http.StatusSeeOther, Header: map[string]string{"Location": address}}
	if t.Outcome.CallbackFirst {
		response.First = s.decide(t)
		return response
	}
	s.platform.After(decisionDelay, func() { s.platform.Send(t, s.decide(t)) })
	return response
}

// decide ends a confirmed payment, unless its outcome is undecided.
func (s *Stub) decide(t *operatorstub.Transaction) []operatorstub.Callback {
	switch t.Outcome.Result {
	case operatorstub.Undecided:
	case operatorstub.Paid:
		t.Status = "SUCCESS"
	default:
		t.Status = "FAILURE"
	}
	return s.platform.Decide(t, func(operatorstub.Result) operatorstub.Callback {
		return operatorstub.Callback{Method: http.MethodPost, URL: t.CallbackURL, Body: []byte(t.Reference)}
	})
}
