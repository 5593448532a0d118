// Package orangecm is a stub of Orange Money Cameroon's core API: the token call, init, pay, push, the lookup and the
// callback. Package kit describes the control paths and the steering by number.
//
// The call init makes a payToken. The call pay uses it, once. A payment is PENDING, and after two seconds SUCCESSFULL
// (two L) or FAILED. No funds (1002) is refused by pay itself, with HTTP 200 and the inittxnstatus 60019, and has no
// callback. The token call returns the same token with its remaining life until it ends. The upstream key is the
// payToken. A repeated orderId is a second payment.
//
// docs/operators/stubs.md lists the choices that no document states.
//
//nolint:misspell // Orange writes SUCCESSFULL with two L
package orangecm

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
)

const (
	decisionDelay = 2 * time.Second // pay to the final status
	base          = "/omcoreapis/1.0.2/mp/"
)

// Credentials are those that the stub accepts.
type Credentials struct {
	ConsumerKey, ConsumerSecret string
	APIUser, APIPassword        string
	ChannelMSISDN, PIN          string // the merchant's channel number and its PIN
}

// DefaultCredentials are for the local run.
func DefaultCredentials() Credentials {
	return Credentials{ //nolint:gosec // the stub's own, and no real account has them
		ConsumerKey: "stub-orangecm-key", ConsumerSecret: "stub-orangecm-secret",
		APIUser: "stub-orangecm-user", APIPassword: "stub-orangecm-password",
		ChannelMSISDN: "690000000", PIN: "2580",
	}
}

// AuthToken is the value of X-AUTH-TOKEN.
func (c Credentials) AuthToken() string {
	return base64.StdEncoding.EncodeToString([]byte(c.APIUser + ":" + c.APIPassword))
}

// The codes of inittxnstatus that were measured.
const (
	noFunds      = "60019"
	noSubscriber = "0066111"
)

// messages are the texts of the refusals of pay, by inittxnstatus.
var messages = map[string]string{
	noFunds:      "The balance of the payer is too low",
	noSubscriber: "Invalid subscriber number",
	"0061":       "Unknown account",
	"0062":       "Invalid subscriber",
	"0063":       "Invalid channel user",
	"0064":       "Unknown wallet",
	"0068":       "Invalid PIN",
	"0069":       "Invalid payToken",
	"0070":       "Invalid orderId",
}

// numbers are the stub's own test numbers, because Orange documents none.
var numbers = map[string]kit.Outcome{
	"690002001": {Result: noSubscriber},
	"690002002": {Result: "0064"},
	"690002003": {Result: "0061"},
	"690002004": {Result: "EXPIRED"},
	"690002005": {Result: "CANCELLED"},
}

// statusWords are the statuses of the results. Every other result is FAILED.
var statusWords = map[kit.Result]string{
	kit.Undecided: "PENDING", kit.Paid: "SUCCESSFULL", "EXPIRED": "EXPIRED", "CANCELLED": "CANCELLED",
}

// otherWords are the spellings of status words by quirk.
var otherWords = map[string][2]string{
	"word_success":    {"SUCCESSFULL", "SUCCESS"},
	"word_successful": {"SUCCESSFULL", "SUCCESSFUL"},
	"word_initiated":  {"PENDING", "INITIATED"},
	"word_canceled":   {"CANCELLED", "CANCELED"},
}

type stub struct {
	*kit.Platform
	Credentials
}

// New makes a stub of one platform of Orange Money Cameroon.
func New(config kit.Config, credentials Credentials) *kit.Platform {
	s := &stub{Credentials: credentials}
	s.Platform = kit.New(config, kit.Spec{
		Operator: "orangecm", Numbers: numbers, TokenLife: time.Hour, Authorize: s.authorize, Callback: s.callback,
		Operations: []kit.Operation{
			{Pattern: "POST /token", Name: "token", Open: true, Serve: s.token},
			{Pattern: "POST " + base + "init", Name: "init", Serve: s.init},
			{Pattern: "POST " + base + "pay", Name: "pay", Key: "payToken", OrderID: "orderId",
				MSISDN: "subscriberMsisdn", Callback: "notifUrl", Check: s.checkPay, Serve: s.pay},
			{Pattern: "GET " + base + "push/{token}", Name: "push", Key: "path:token", Serve: s.status},
			{Pattern: "GET " + base + "paymentstatus/{token}", Name: "status", Key: "path:token", Serve: s.status},
		},
		Faults: map[string]kit.Response{
			"400":     message(http.StatusBadRequest, "Bad request"),
			"401":     fault(false, http.StatusUnauthorized, 900901, "Invalid Credentials"),
			"401-xml": fault(true, http.StatusUnauthorized, 900901, "Invalid Credentials"),
			"403":     fault(false, http.StatusForbidden, 900908, "Resource forbidden"),
			"422":     message(http.StatusUnprocessableEntity, "payToken already used"),
			"429":     fault(false, http.StatusTooManyRequests, 900800, "Message throttled out"),
			"503-xml": fault(true, http.StatusServiceUnavailable, 900807, "Service unavailable"),
		},
		Quirks: []string{
			"refusals_400",     // 60019 and 0066111 have HTTP 400 instead of 200
			"unpaid_expired",   // the lookup of an unpaid payToken is EXPIRED instead of null fields
			"word_success",     // SUCCESS instead of the word with two L
			"word_successful",  // SUCCESSFUL, with one L
			"word_initiated",   // INITIATED instead of PENDING
			"word_accepted",    // SUCCESSFULL, without a confirmtxnstatus, instead of PENDING
			"word_canceled",    // CANCELED instead of CANCELLED
			"amount_text",      // amount is a text in responses
			"createtime_iso",   // createtime is a date and time instead of Unix seconds
			"callback_short",   // the callback is {"payToken","status","message"}
			"callback_retried", // the callback is sent again after 1 and 5 minutes, until a status from 200 to 299
			"xml_faults",       // the gateway's faults are XML on all calls; on the token call they always are
			"order_id_20",      // an orderId above 20 characters is refused with 0070
		},
	})
	return s.Platform
}

// fault is an error of the API gateway in front of the platform, in JSON or XML.
func fault(xml bool, status, code int, message string) kit.Response {
	if !xml {
		return kit.JSON(status, map[string]any{"fault": map[string]any{
			"code": code, "message": message, "description": "Access failure for API: /omcoreapis/1.0.2",
		}})
	}
	body := fmt.Sprintf(`<ams:fault xmlns:ams="http://wso2.org/apimanager/security"><ams:code>%d</ams:code>`+
		`<ams:message>%s</ams:message><ams:description>Access failure for API</ams:description></ams:fault>`,
		code, message)
	return kit.Response{Status: status, Type: "application/xml; charset=UTF-8", Body: []byte(body)}
}

// message is a response without data.
func message(status int, text string) kit.Response {
	return kit.JSON(status, kit.Fields{"message": text})
}

func dataResponse(status int, text string, data kit.Fields) kit.Response {
	return kit.JSON(status, kit.Fields{"message": text, "data": data})
}

func (s *stub) token(c *kit.Call) kit.Response {
	return s.Grant(c, kit.Grant{
		Clients:   map[string]string{s.ConsumerKey: s.ConsumerSecret},
		BadClient: fault(true, http.StatusUnauthorized, 900901, "Invalid Credentials"),
		BadType:   kit.JSON(http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type"}),
		Fields:    kit.Fields{"scope": "am_application_scope default", "token_type": "Bearer"},
		Reuse:     true,
	})
}

func (s *stub) authorize(c *kit.Call) kit.Response {
	xml := s.Quirk("xml_faults")
	_, valid := s.TokenOwner(c)
	return kit.FirstOf(
		kit.If(!valid, fault(xml, http.StatusUnauthorized, 900901, "Invalid Credentials")),
		kit.If(c.Request.Header.Get("X-AUTH-TOKEN") != s.AuthToken(),
			fault(xml, http.StatusForbidden, 900908, "Resource forbidden")),
	)
}

// init makes a payToken. The transaction has no status until pay.
func (s *stub) init(c *kit.Call) kit.Response {
	c.Key = "MP" + s.Now().Format("060102") + strings.ToUpper(s.NewID(10))
	s.Add(c, &kit.Transaction{Currency: "XAF"})
	return dataResponse(http.StatusOK, "Payment request successfully initiated", kit.Fields{"payToken": c.Key})
}

// checkPay refuses a call of pay that changes nothing.
func (s *stub) checkPay(c *kit.Call) kit.Response {
	t := s.Find(c.Key)
	longOrder := s.Quirk("order_id_20") && len(c.OrderID) > 20
	return kit.FirstOf(
		kit.If(c.Fields == nil, message(http.StatusBadRequest, "Invalid request body")),
		kit.If(c.Text("channelUserMsisdn") != s.ChannelMSISDN, refuse(c.Key, "0063")),
		kit.If(c.Text("pin") != s.PIN, refuse(c.Key, "0068")),
		kit.If(t == nil, refuse(c.Key, "0069")),
		kit.If(t != nil && t.Status != "", message(http.StatusUnprocessableEntity, "payToken already used")),
		kit.If(c.OrderID == "" || longOrder, refuse(c.Key, "0070")),
		kit.If(!kit.IsWholeAmount(c.Text("amount")), message(http.StatusBadRequest, "Invalid amount")),
		kit.If(len(c.MSISDN) != 9 || !kit.IsDigits(c.MSISDN), refuse(c.Key, "0062")),
	)
}

// refuse is the response to a payment that is not stored.
func refuse(payToken, code string) kit.Response {
	return dataResponse(http.StatusBadRequest, messages[code], kit.Fields{"payToken": payToken, "txnid": nil,
		"status": "FAILED", "inittxnstatus": code, "inittxnmessage": messages[code], "confirmtxnstatus": nil,
		"confirmtxnmessage": nil})
}

// pay starts a payment and decides it later, or refuses it at once by its number.
func (s *stub) pay(c *kit.Call) kit.Response {
	t := s.Find(c.Key)
	t.Keys, t.Sent, t.Amount, t.CallbackURL = c.Keys, c.Fields, c.Text("amount"), c.Text("notifUrl")
	t.Status, t.CreatedAt, t.Outcome = "PENDING", s.Now(), s.OutcomeFor(c.MSISDN)
	t.Reference, t.Details["id"] = t.CreatedAt.Format("MP060102.1504.A")+s.NewDigits(5), s.NewDigits(9)
	if !strings.HasPrefix(c.MSISDN, "6") {
		t.Outcome = kit.Outcome{Result: noSubscriber}
	}
	code := refusalCode(t.Outcome.Result)
	if code == "" {
		return s.DecideAfter(decisionDelay, t, dataResponse(http.StatusOK, "Merchant payment successfully initiated",
			s.view(t, kit.Undecided)))
	}
	s.Decide(t)
	status := http.StatusBadRequest
	if (code == noFunds || code == noSubscriber) && !s.Quirk("refusals_400") {
		status = http.StatusOK // as it was measured
	}
	return dataResponse(status, messages[code], s.view(t, t.Result))
}

// refusalCode returns the inittxnstatus of a result that pay refuses at once, or "".
func refusalCode(result kit.Result) string {
	if result == kit.NoFunds {
		return noFunds
	}
	if messages[string(result)] == "" {
		return ""
	}
	return string(result)
}

func (s *stub) callback(t *kit.Transaction, result kit.Result) kit.Callback {
	data := s.view(t, result)
	body := kit.Fields{"message": "Payment notification", "data": data}
	if s.Quirk("callback_short") {
		body = kit.Fields{"message": body["message"], "payToken": t.Key, "status": data["status"]}
	}
	if s.Quirk("callback_retried") {
		return t.Post(body, time.Minute, 5*time.Minute)
	}
	return t.Post(body)
}

// status serves the lookup and push.
func (s *stub) status(c *kit.Call) kit.Response {
	t := s.Find(c.Key)
	if t == nil {
		return message(http.StatusBadRequest, messages["0069"]) // a status would end a payment that exists elsewhere
	}
	return dataResponse(http.StatusOK, "Transaction retrieved successfully", s.view(t, t.Result))
}

// view is the data of a payment with this result. Before pay, all fields but payToken are null.
func (s *stub) view(t *kit.Transaction, result kit.Result) kit.Fields {
	data := kit.Fields{
		"id": json.Number(t.Details["id"]), "createtime": fmt.Sprint(t.CreatedAt.Unix()), "payToken": t.Key,
		"subscriberMsisdn": t.MSISDN, "amount": json.Number(t.Amount), "txnid": t.Reference, "txnmode": t.OrderID,
		"inittxnmessage": "The payer must confirm the payment with his PIN", "inittxnstatus": "200",
		"confirmtxnstatus": nil, "confirmtxnmessage": nil, "notifUrl": t.CallbackURL,
		"description": t.Sent.Text("description"), "channelUserMsisdn": s.ChannelMSISDN,
		"status": cmp.Or(statusWords[result], "FAILED"),
	}
	if s.Quirk("amount_text") {
		data["amount"] = t.Amount
	}
	if s.Quirk("createtime_iso") {
		data["createtime"] = t.CreatedAt.Format(time.RFC3339)
	}
	if code := refusalCode(result); code != "" {
		data["txnid"], data["inittxnstatus"], data["inittxnmessage"] = nil, code, messages[code]
	}
	if result == kit.Paid {
		data["confirmtxnstatus"], data["confirmtxnmessage"] = "200", "Payment successful"
	}
	if t.Status == "" {
		for name := range data {
			data[name] = nil
		}
		data["payToken"] = t.Key
	}
	if t.Status == "" && s.Quirk("unpaid_expired") {
		data["status"] = "EXPIRED"
	}
	if data["status"] == statusWords[kit.Undecided] && s.Quirk("word_accepted") {
		data["status"] = statusWords[kit.Paid]
	}
	for quirk, words := range otherWords {
		if s.Quirk(quirk) && data["status"] == words[0] {
			data["status"] = words[1]
		}
	}
	return data
}
