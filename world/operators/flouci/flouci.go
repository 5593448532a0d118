// Package flouci is a stub of Flouci's payment API, version 2, for tests. Every request makes a new payment with a page
// at /c/{payment_id}, which the payer confirms with a phone number: its last four digits select the outcome. The body
// of its callback is the payment_id, because Flouci documents no form. The quirk session_3s ends pages soon.
package flouci

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"mobilegateway/shared/money"
	"mobilegateway/world/operators/kit"
)

const decisionDelay = time.Second

// Credentials are those that the stub accepts.
type Credentials struct {
	PublicKey, PrivateKey string
	// PageURL is the public address of the stub with its prefix, without a slash at the end.
	PageURL string
}

// DefaultCredentials are for the local run, which sets PageURL.
func DefaultCredentials() Credentials {
	return Credentials{PublicKey: "stub-app", PrivateKey: "stub-private-key"}
}

type stub struct {
	*kit.Platform
	Credentials
}

// New makes a stub of one Flouci platform.
func New(config kit.Config, credentials Credentials) *kit.Platform {
	s := &stub{Credentials: credentials}
	s.Platform = kit.New(config, kit.Spec{
		Operator: "flouci", Authorize: s.authorize, End: end,
		Operations: []kit.Operation{
			{Pattern: "POST /api/v2/generate_payment", Name: "create", Key: "developer_tracking_id", Serve: s.create},
			{Pattern: "GET /api/v2/verify_payment/{id}", Name: "status", Key: "page:id", Serve: s.status},
		},
		Errors: []kit.Error{
			kit.NewError("400", http.StatusBadRequest, "Bad Request"),
			kit.NewError("401", http.StatusUnauthorized, "Unauthorized"),
			kit.NewError("403", http.StatusForbidden, "Forbidden"),
			kit.NewError("404", http.StatusNotFound, "Not Found"),
			kit.NewError("429", http.StatusTooManyRequests, "Too Many Requests"),
		},
		ErrorForm: func(e kit.Error, _ string) kit.Response {
			result := map[string]any{"status": e.Status, "message": e.Message}
			return kit.JSON(e.Status, map[string]any{"result": result})
		},
		Hosted: &kit.Hosted{
			Path: "/c/{id}", Short: "session_3s", Open: "PENDING", Expired: "EXPIRED", Page: page,
			Cancel: s.cancel, Confirm: s.confirm,
		},
		StatementAmount: statementAmount,
		Callback: func(t *kit.Transaction, _ kit.Result) kit.Callback {
			return kit.Callback{Method: http.MethodPost, URL: t.CallbackURL, Body: []byte(t.PageID)}
		},
	})
	return s.Platform
}

// statementAmount is an amount in dinars: a request has thousandths.
func statementAmount(e kit.Effect) string {
	minor, err := money.ParseMinorUnits(e.Amount)
	if err != nil {
		return e.Amount // create has refused it
	}
	const thousandths = 3
	return money.Format(minor, thousandths)
}

func (s *stub) authorize(c *kit.Call) kit.Response {
	if c.Request.Header.Get("Authorization") != "Bearer "+s.PublicKey+":"+s.PrivateKey {
		return s.Error("401", "")
	}
	return kit.Response{}
}

func (s *stub) create(c *kit.Call) kit.Response {
	number, _ := c.Fields["session_timeout_secs"].(json.Number)
	seconds, err := number.Int64()
	if err != nil || seconds <= 0 || !kit.IsAmount(c.Text("amount")) || strings.Contains(c.Text("amount"), ".") ||
		c.Text("success_link") == "" || c.Text("fail_link") == "" {
		return s.Error("400", "")
	}
	t := s.Add(c, &kit.Transaction{Amount: c.Text("amount"), Currency: "TND", CallbackURL: c.Text("webhook"),
		Status: "PENDING", PageID: s.NewID(11)})
	if !s.Quirk("session_3s") {
		t.EndsAt = s.Now().Add(time.Duration(seconds) * time.Second)
	}
	return kit.JSON(http.StatusOK, map[string]any{
		"name": "developers", "code": 0, "version": "v2", "result": map[string]any{
			"success": true, "payment_id": t.PageID, "link": s.PageURL + "/c/" + t.PageID,
			"developer_tracking_id": t.Key,
		},
	})
}

func (s *stub) status(c *kit.Call) kit.Response {
	t := s.FindPage(c.Request.PathValue("id"))
	if t == nil {
		return s.Error("404", "")
	}
	return kit.JSON(http.StatusOK, map[string]any{
		"success": true, "status_code": http.StatusOK, "result": map[string]any{
			"type": "wallet", "amount": json.Number(t.Amount), "status": t.Status, "details": map[string]any{},
			"developer_tracking_id": t.Key,
		},
	})
}

func page(t *kit.Transaction) kit.Page {
	return kit.Page{Title: "Pay with Flouci", Amount: t.Amount + " thousandths of", Currency: t.Currency,
		OrderID: t.Key}
}

func (s *stub) cancel(t *kit.Transaction, _ *kit.Call) kit.Response {
	t.Outcome = kit.Outcome{Result: kit.Refused}
	return s.DecideAfter(decisionDelay, t, kit.Redirect(t.Sent.Text("fail_link")))
}

func (s *stub) confirm(t *kit.Transaction, c *kit.Call) kit.Response {
	t.MSISDN, t.Outcome = c.MSISDN, s.OutcomeFor(c.MSISDN)
	address := t.Sent.Text("success_link")
	if r := t.Outcome.Result; r != kit.Paid && r != kit.Undecided {
		address = t.Sent.Text("fail_link")
	}
	return s.DecideAfter(decisionDelay, t, kit.Redirect(address))
}

func end(t *kit.Transaction) {
	switch t.Outcome.Result {
	case kit.Undecided:
	case kit.Paid:
		t.Status = "SUCCESS"
	default:
		t.Status = "FAILURE"
	}
}
