// Package orangecm is a stub of Orange Money Cameroon's core API: the token call, init, pay, push, the lookup and the
// callback. Package operatorstub describes the control paths and the steering by number.
//
// The call init makes a payToken. The call pay uses it, once. A payment is PENDING, and after two seconds SUCCESSFULL
// (two L) or FAILED. No funds (1002) is refused by pay itself, with HTTP 200 and the inittxnstatus 60019, and has no
// callback. The token call returns the same token with its remaining life until it ends. The upstream key is the
// payToken. A repeated orderId is a second payment.
//
// Orange documents no test numbers. These are the stub's own:
//
//	690002001  inittxnstatus 0066111, no subscriber   690002004  EXPIRED
//	690002002  inittxnstatus 0064, unknown wallet     690002005  CANCELLED
//	690002003  inittxnstatus 0061, unknown account
//
// Quirks:
//
//	refusals_400       60019 and 0066111 have HTTP 400 instead of 200
//	unpaid_expired     the lookup of an unpaid payToken is EXPIRED instead of null fields
//	word_success       SUCCESS instead of the word with two L
//	word_successful    SUCCESSFUL, with one L
//	word_initiated     INITIATED instead of PENDING
//	word_canceled      CANCELED instead of CANCELLED
//	amount_text        amount is a text in responses
//	createtime_iso     createtime is a date and time instead of Unix seconds
//	callback_short     the callback is {"payToken","status","message"}
//	callback_retried   the callback is sent again after 1 and 5 minutes, until a status from 200 to 299
//	xml_faults         the gateway's faults are XML on all calls; on the token call they always are
//	order_id_20        an orderId above 20 characters is refused with 0070
//
// These choices are inferred, because no document states them:
//
//	order of checks                token, X-AUTH-TOKEN, JSON, channel, PIN, payToken, repeat, orderId, amount, number
//	codes 0061 to 0070             HTTP 400, in the form of a refusal (the codes come from a simulator)
//	a refusal by number            uses the payToken up; every other refusal leaves it unused
//	a wrong amount                 400 with a message alone
//	a number without 9 digits      0062; one that does not begin with 6 is 0066111
//	an unknown payToken            400 with 0069, also in the lookup
//	wrong X-AUTH-TOKEN             403 with the gateway's fault 900908
//	body of 422                    a message alone
//	a decision of FAILED           confirmtxnstatus is null
//	push                           changes nothing
//	bulk lookup                    not served
//
//nolint:misspell // Orange writes SUCCESSFULL with two L
package orangecm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/internal/operatorstub"
)

const (
	decisionDelay = 2 * time.Second // pay to the final status
	tokenLife     = time.Hour
	pay           = "pay"
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

// numbers are the stub's own test numbers.
var numbers = map[string]operatorstub.Outcome{
	"690002001": {Result: noSubscriber},
	"690002002": {Result: "0064"},
	"690002003": {Result: "0061"},
	"690002004": {Result: "EXPIRED"},
	"690002005": {Result: "CANCELLED"},
}

// otherWords are the spellings of status words by quirk.
var otherWords = map[string][2]string{
	"word_success":    {"SUCCESSFULL", "SUCCESS"},
	"word_successful": {"SUCCESSFULL", "SUCCESSFUL"},
	"word_initiated":  {"PENDING", "INITIATED"},
	"word_canceled":   {"CANCELLED", "CANCELED"},
}

// Stub is one platform of Orange Money Cameroon.
type Stub struct {
	platform    *operatorstub.Platform
	credentials Credentials
}

// New makes a stub.
func New(config operatorstub.Config, credentials Credentials) *Stub {
	faults := map[string]operatorstub.Response{
		"400":     operatorstub.JSON(http.StatusBadRequest, map[string]any{"message": "Bad request"}),
		"401":     fault(false, http.StatusUnauthorized, 900901, "Invalid Credentials"),
		"401-xml": fault(true, http.StatusUnauthorized, 900901, "Invalid Credentials"),
		"403":     fault(false, http.StatusForbidden, 900908, "Resource forbidden"),
		"422":     used(),
		"429":     fault(false, http.StatusTooManyRequests, 900800, "Message throttled out"),
		"503-xml": fault(true, http.StatusServiceUnavailable, 900807, "Service unavailable"),
	}
	quirks := append(slices.Sorted(maps.Keys(otherWords)), "refusals_400", "unpaid_expired", "amount_text",
		"createtime_iso", "callback_short", "callback_retried", "xml_faults", "order_id_20")
	return &Stub{credentials: credentials, platform: operatorstub.New(config, operatorstub.Spec{
		Operator: "orangecm", Faults: faults, Quirks: quirks, Numbers: numbers, TokenLife: tokenLife,
	})}
}

// Handler serves the stub from the root.
func (s *Stub) Handler() http.Handler {
	noKeys := func(*http.Request, []byte) operatorstub.Keys { return operatorstub.Keys{} }
	inPath := func(r *http.Request, _ []byte) operatorstub.Keys {
		return operatorstub.Keys{Key: r.PathValue("token")}
	}
	return s.platform.Handler(
		operatorstub.Operation{Pattern: "POST /token", Name: "token", Identify: noKeys, Serve: s.token},
		operatorstub.Operation{Pattern: "POST " + base + "init", Name: "init", Identify: noKeys, Serve: s.init},
		operatorstub.Operation{Pattern: "POST " + base + "pay", Name: pay, Identify: identify, Serve: s.pay},
		operatorstub.Operation{Pattern: "GET " + base + "push/{token}", Name: "push", Identify: inPath,
			Serve: s.status},
		operatorstub.Operation{Pattern: "GET " + base + "paymentstatus/{token}", Name: "status", Identify: inPath,
			Serve: s.status},
	)
}

// fault is an error of the API gateway in front of the platform, in JSON or XML.
func fault(xml bool, status, code int, message string) operatorstub.Response {
	if !xml {
		return operatorstub.JSON(status, map[string]any{"fault": map[string]any{
			"code": code, "message": message, "description": "Access failure for API: /omcoreapis/1.0.2",
		}})
	}
	body := fmt.Sprintf(`<ams:fault xmlns:ams="http://wso2.org/apimanager/security"><ams:code>%d</ams:code>`+
		`<ams:message>%s</ams:message><ams:description>Access failure for API</ams:description></ams:fault>`,
		code, message)
	return operatorstub.Response{Status: status, Type: "application/xml; charset=UTF-8", Body: []byte(body)}
}

func used() operatorstub.Response {
	return operatorstub.JSON(http.StatusUnprocessableEntity, map[string]any{"message": "payToken already used"})
}

func (s *Stub) token(c *operatorstub.Call) operatorstub.Response {
	key, secret, _ := c.Request.BasicAuth()
	if key != s.credentials.ConsumerKey || secret != s.credentials.ConsumerSecret {
		return fault(true, http.StatusUnauthorized, 900901, "Invalid Credentials")
	}
	if form, err := url.ParseQuery(string(c.Body)); err != nil || form.Get("grant_type") != "client_credentials" {
		return operatorstub.JSON(http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type"})
	}
	token, life := s.platform.CurrentToken(key)
	return operatorstub.JSON(http.StatusOK, map[string]any{
		"access_token": token, "scope": "am_application_scope default", "token_type": "Bearer", "expires_in": life,
	})
}

// authorize returns a refusal, or false if the call shows both credentials.
func (s *Stub) authorize(r *http.Request) (operatorstub.Response, bool) {
	xml := s.platform.Quirk("xml_faults")
	switch {
	case !s.platform.ValidToken(r, s.credentials.ConsumerKey):
		return fault(xml, http.StatusUnauthorized, 900901, "Invalid Credentials"), true
	case r.Header.Get("X-AUTH-TOKEN") != s.credentials.AuthToken():
		return fault(xml, http.StatusForbidden, 900908, "Resource forbidden"), true
	}
	return operatorstub.Response{}, false
}

// init makes a payToken. The transaction has no status until pay.
func (s *Stub) init(c *operatorstub.Call) operatorstub.Response {
	if refused, ok := s.authorize(c.Request); ok {
		return refused
	}
	c.Key = "MP" + s.platform.Now().Format("060102") + strings.ToUpper(s.platform.NewID(10))
	s.platform.Add(&operatorstub.Transaction{Operation: pay, Key: c.Key, Currency: "XAF"})
	return operatorstub.JSON(http.StatusOK, map[string]any{
		"message": "Payment request successfully initiated", "data": map[string]string{"payToken": c.Key},
	})
}

type payment struct {
	SubscriberMSISDN  string `json:"subscriberMsisdn"`
	ChannelUserMSISDN string `json:"channelUserMsisdn"`
	Amount            string `json:"amount"`
	Description       string `json:"description"`
	OrderID           string `json:"orderId"`
	PIN               string `json:"pin"`
	PayToken          string `json:"payToken"`
	NotifURL          string `json:"notifUrl"`
}

func identify(_ *http.Request, body []byte) operatorstub.Keys {
	var p payment
	_ = json.Unmarshal(body, &p) // pay refuses it
	return operatorstub.Keys{Key: p.PayToken, OrderID: p.OrderID, MSISDN: p.SubscriberMSISDN}
}

func (s *Stub) pay(c *operatorstub.Call) operatorstub.Response {
	if refused, ok := s.authorize(c.Request); ok {
		return refused
	}
	var p payment
	if json.Unmarshal(c.Body, &p) != nil {
		return operatorstub.JSON(http.StatusBadRequest, map[string]any{"message": "Invalid request body"})
	}
	t := s.platform.Find(pay, p.PayToken)
	switch {
	case p.ChannelUserMSISDN != s.credentials.ChannelMSISDN:
		return s.refuse(p.PayToken, "0063")
	case p.PIN != s.credentials.PIN:
		return s.refuse(p.PayToken, "0068")
	case t == nil:
		return s.refuse(p.PayToken, "0069")
	case t.Status != "":
		return used()
	case p.OrderID == "" || s.platform.Quirk("order_id_20") && len(p.OrderID) > 20:
		return s.refuse(p.PayToken, "0070")
	case !operatorstub.IsAmount(p.Amount) || strings.Contains(p.Amount, ".") || p.Amount[0] == '0':
		return operatorstub.JSON(http.StatusBadRequest, map[string]any{"message": "Invalid amount"})
	case len(p.SubscriberMSISDN) != 9 || strings.Trim(p.SubscriberMSISDN, "0123456789") != "":
		return s.refuse(p.PayToken, "0062")
	}
	return s.accept(t, p)
}

// refuse is the response to a payment that is not stored.
func (s *Stub) refuse(payToken, code string) operatorstub.Response {
	data := map[string]any{"payToken": payToken, "txnid": nil, "status": "FAILED", "inittxnstatus": code,
		"inittxnmessage": messages[code], "confirmtxnstatus": nil, "confirmtxnmessage": nil}
	return operatorstub.JSON(http.StatusBadRequest, map[string]any{"message": messages[code], "data": data})
}

// accept starts a payment and decides it later, or refuses it at once by its number.
func (s *Stub) accept(t *operatorstub.Transaction, p payment) operatorstub.Response {
	t.OrderID, t.Amount, t.MSISDN, t.CallbackURL = p.OrderID, p.Amount, p.SubscriberMSISDN, p.NotifURL
	t.Status, t.CreatedAt, t.Outcome = "PENDING", s.platform.Now(), s.platform.OutcomeFor(p.SubscriberMSISDN)
	t.Reference = t.CreatedAt.Format("MP060102.1504.A") + s.platform.NewDigits(5)
	t.Details = map[string]string{"id": s.platform.NewDigits(9), "description": p.Description}
	if !strings.HasPrefix(p.SubscriberMSISDN, "6") {
		t.Outcome = operatorstub.Outcome{Result: noSubscriber}
	}
	if code := refusalCode(t.Outcome.Result); code != "" {
		s.decide(t)
		body := map[string]any{"message": messages[code], "data": s.view(t, t.Result)}
		if measured := code == noFunds || code == noSubscriber; measured && !s.platform.Quirk("refusals_400") {
			return operatorstub.JSON(http.StatusOK, body)
		}
		return operatorstub.JSON(http.StatusBadRequest, body)
	}
	response := operatorstub.JSON(http.StatusOK, map[string]any{
		"message": "Merchant payment successfully initiated", "data": s.view(t, operatorstub.Undecided),
	})
	if t.Outcome.CallbackFirst {
		response.First = s.decide(t)
		return response
	}
	s.platform.After(decisionDelay, func() { s.platform.Send(t, s.decide(t)) })
	return response
}

// refusalCode returns the inittxnstatus of a result that pay refuses at once, or "".
func refusalCode(result operatorstub.Result) string {
	switch {
	case result == operatorstub.NoFunds:
		return noFunds
	case messages[string(result)] != "":
		return string(result)
	}
	return ""
}

func (s *Stub) decide(t *operatorstub.Transaction) []operatorstub.Callback {
	return s.platform.Decide(t, func(r operatorstub.Result) operatorstub.Callback {
		data := s.view(t, r)
		body := map[string]any{"message": "Payment notification", "data": data}
		if s.platform.Quirk("callback_short") {
			body = map[string]any{"message": body["message"], "payToken": t.Key, "status": data["status"]}
		}
		callback := operatorstub.Callback{Method: http.MethodPost, URL: t.CallbackURL,
			Body: operatorstub.JSON(0, body).Body}
		if s.platform.Quirk("callback_retried") {
			callback.Retries = []time.Duration{time.Minute, 5 * time.Minute}
		}
		return callback
	})
}

// status serves the lookup and push.
func (s *Stub) status(c *operatorstub.Call) operatorstub.Response {
	if refused, ok := s.authorize(c.Request); ok {
		return refused
	}
	t := s.platform.Find(pay, c.Key)
	if t == nil {
		return s.refuse(c.Key, "0069")
	}
	return operatorstub.JSON(http.StatusOK, map[string]any{
		"message": "Transaction retrieved successfully", "data": s.view(t, t.Result),
	})
}

// view is the data of a payment with this result. Before pay, all fields but payToken are null.
func (s *Stub) view(t *operatorstub.Transaction, result operatorstub.Result) map[string]any {
	data := map[string]any{
		"id": nil, "createtime": nil, "subscriberMsisdn": nil, "amount": nil, "payToken": t.Key, "txnid": nil,
		"txnmode": nil, "inittxnmessage": nil, "inittxnstatus": nil, "confirmtxnstatus": nil,
		"confirmtxnmessage": nil, "status": nil, "notifUrl": nil, "description": nil, "channelUserMsisdn": nil,
	}
	if t.Status == "" {
		if s.platform.Quirk("unpaid_expired") {
			data["status"] = "EXPIRED"
		}
		return data
	}
	maps.Copy(data, map[string]any{
		"id": json.Number(t.Details["id"]), "createtime": fmt.Sprint(t.CreatedAt.Unix()),
		"subscriberMsisdn": t.MSISDN, "amount": json.Number(t.Amount), "txnid": t.Reference, "txnmode": t.OrderID,
		"inittxnmessage": "The payer must confirm the payment with his PIN", "inittxnstatus": "200",
		"notifUrl": t.CallbackURL, "description": t.Details["description"],
		"channelUserMsisdn": s.credentials.ChannelMSISDN, "status": statusWord(result),
	})
	if code := refusalCode(result); code != "" {
		data["txnid"], data["inittxnstatus"], data["inittxnmessage"] = nil, code, messages[code]
	}
	if result == operatorstub.Paid {
		data["confirmtxnstatus"], data["confirmtxnmessage"] = "200", "Payment successful"
	}
	s.applyForms(t, data)
	return data
}

func statusWord(result operatorstub.Result) string {
	switch result {
	case operatorstub.Undecided:
		return "PENDING"
	case operatorstub.Paid:
		return "SUCCESSFULL"
	case "EXPIRED", "CANCELLED":
		return string(result)
	}
	return "FAILED"
}

// applyForms changes the data of a payment to the other forms that the quirks select.
func (s *Stub) applyForms(t *operatorstub.Transaction, data map[string]any) {
	for quirk, words := range otherWords {
		if s.platform.Quirk(quirk) && data["status"] == words[0] {
			data["status"] = words[1]
		}
	}
	if s.platform.Quirk("amount_text") {
		data["amount"] = t.Amount
	}
	if s.platform.Quirk("createtime_iso") {
		data["createtime"] = t.CreatedAt.Format(time.RFC3339)
	}
}
