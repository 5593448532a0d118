// Package orangesms is a stub of Orange's SMS API: the token call, a send, its delivery receipts and the balance.
// Package operatorstub describes the control paths and the steering by number.
//
// A send has no idempotency key: two equal sends are two SMS, two effects and twice the units. The response's
// resourceURL ends in the id of the request, which is the callbackData of the receipts and the key of the effect. The
// order id of the effect is a digest of the request's body, so that equal sends have one. The fault of a number applies
// to the first send of a body.
//
// An ordinary SMS has the receipts DeliveredToNetwork after one second and DeliveredToTerminal after two. They go to
// the one address of the account. They are not signed and not sent again. A send uses one unit for each part of 160 or
// 153 septets; a text outside GSM-7 has parts of 70 or 67 UTF-16 units. Above 5 sends a second an account gets 429.
//
// The numbers of package operatorstub mean: 1001 is DeliveryImpossible and never sent, 1002 is POL0001, and 1003 is
// sent and has no receipts. 1006 has each receipt three times. 1007 has DeliveryImpossible after the others. Orange
// documents no test numbers. The stub's own are +2250700002001, DeliveryUncertain, and +2250700002002, MessageWaiting.
//
// Quirks:
//
//	receipts_reordered      the receipts come in reverse order
//	receipts_twice          each receipt comes twice
//	receipts_lost           no receipt comes
//	receipts_network_only   DeliveredToNetwork is the last receipt
//	bundle_empty            every send is refused with POL0001
//	off_net_lost            an SMS to another country uses units, but is not sent and has no receipt
//	sender_name_replaced    a name that is not approved is left out of the SMS instead of refused
//	no_resource_url         the response to a send lacks resourceURL
//	expires_in_number       expires_in is a number instead of a text
//
// These choices are inferred, because no document states them:
//
//	order of checks         token, rate, body, sender, recipient, text, sender name, units
//	429                     the gateway's form with code 53; a refused send counts too
//	wrong token             401 with code 42; 41 without a token and for wrong credentials
//	name not approved       403 with POL1009; 400 with SVC0002 above 11 characters
//	an array of recipients  400 with SVC0002, also for one recipient
//	other senderAddress     400 with SVC0002; an unknown sender in the path is 404 with code 60
//	too few units           POL0001, nothing is sent
//	text                    at most 1024 characters
//	fields of the balance   client code
//	subscriptions           not served: the address of receipts is a setting of the account
package orangesms

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mobilegateway/internal/operatorstub"
)

const (
	networkDelay  = time.Second     // the send to the first receipt
	terminalDelay = 2 * time.Second // the send to the last receipt
	tokenLife     = time.Hour
	ratePerSecond = 5
	maxText       = 1024 // characters
	maxName       = 11   // characters of senderName
	send          = "send"
	resourceBase  = "https://api.orange.com/smsmessaging/v1/outbound/"
)

// Sender is the contract of one country.
type Sender struct {
	Address string   // of the sender, as tel:+2250000
	Country string   // ISO 3166-1 alpha-3
	Prefix  string   // calling code with its plus sign
	Units   int      // of the bundle at the start
	Names   []string // approved sender names
}

// Credentials are those that the stub accepts, and the contracts of the account.
type Credentials struct {
	ClientID, ClientSecret string
	// ReceiptURL is the account's address of receipts; "" sends none.
	ReceiptURL string
	Senders    []Sender
}

// DefaultCredentials are for the local run, with 10,000 units and the sender name "Stub" in each of the six countries.
func DefaultCredentials() Credentials {
	c := Credentials{ClientID: "stub-orangesms-id", ClientSecret: "stub-orangesms-secret"}
	codes := []string{"CIV 225", "SEN 221", "CMR 237", "BFA 226", "COD 243", "TUN 216"}
	for _, code := range codes {
		country, prefix, _ := strings.Cut(code, " ")
		c.Senders = append(c.Senders, Sender{Address: "tel:+" + prefix + "0000", Country: country,
			Prefix: "+" + prefix, Units: 10_000, Names: []string{"Stub"}})
	}
	return c
}

// numbers are the stub's own test numbers.
var numbers = map[string]operatorstub.Outcome{
	"+2250700002001": {Result: "DeliveryUncertain"},
	"+2250700002002": {Result: "MessageWaiting"},
}

// exceptions are the platform's errors by message id, with their HTTP status and text.
var exceptions = map[string]struct {
	status int
	text   string
}{
	"SVC0001": {http.StatusBadRequest, "A service error occurred. Error code is %1."},
	"SVC0002": {http.StatusBadRequest, "Invalid input value for message part %1."},
	"SVC0004": {http.StatusBadRequest, "No valid addresses provided in message part %1."},
	"SVC0280": {http.StatusBadRequest, "Message too long. Maximum length is %1 characters."},
	"POL0001": {http.StatusForbidden, "A policy error occurred. Error code is %1."},
	"POL1009": {http.StatusForbidden, "The application is not provisioned for %1."},
}

// Stub is one account of the SMS API.
type Stub struct {
	platform    *operatorstub.Platform
	credentials Credentials

	// The platform's lock guards these.
	used  map[string]int // units by sender
	sends []time.Time    // within the last second
}

// New makes a stub.
func New(config operatorstub.Config, credentials Credentials) *Stub {
	faults := map[string]operatorstub.Response{
		"401": gatewayError(http.StatusUnauthorized, 42, "Expired credentials"),
		"403": gatewayError(http.StatusForbidden, 50, "Access denied"),
		"404": gatewayError(http.StatusNotFound, 60, "Resource not found"),
		"429": gatewayError(http.StatusTooManyRequests, 53, "Too many requests"),
		"503": gatewayError(http.StatusServiceUnavailable, 5, "The service is temporarily unavailable"),

		"503-html": operatorstub.HTML(http.StatusServiceUnavailable, "Service Unavailable"),
	}
	for id := range exceptions {
		faults[id] = exception(id, "stub")
	}
	return &Stub{credentials: credentials, used: map[string]int{}, platform: operatorstub.New(config, operatorstub.Spec{
		Operator: "orangesms", Faults: faults, Numbers: numbers, TokenLife: tokenLife,
		Quirks: []string{"receipts_reordered", "receipts_twice", "receipts_lost", "receipts_network_only",
			"bundle_empty", "off_net_lost", "sender_name_replaced", "no_resource_url", "expires_in_number"},
	})}
}

// Handler serves the stub from the root.
func (s *Stub) Handler() http.Handler {
	noKeys := func(*http.Request, []byte) operatorstub.Keys { return operatorstub.Keys{} }
	return s.platform.Handler(
		operatorstub.Operation{Pattern: "POST /oauth/v3/token", Name: "token", Identify: noKeys, Serve: s.token},
		operatorstub.Operation{Pattern: "POST /smsmessaging/v1/outbound/{sender}/requests", Name: send,
			Identify: identify, Serve: s.send},
		operatorstub.Operation{Pattern: "GET /sms/admin/v1/contracts", Name: "contracts", Identify: noKeys,
			Serve: s.contracts},
	)
}

// gatewayError is an error of the API gateway in front of the platform.
func gatewayError(status, code int, message string) operatorstub.Response {
	return operatorstub.JSON(status, map[string]any{"code": code, "message": message, "description": message})
}

// exception is an error of the platform.
func exception(id, variable string) operatorstub.Response {
	kind := "serviceException"
	if strings.HasPrefix(id, "POL") {
		kind = "policyException"
	}
	e := exceptions[id]
	return operatorstub.JSON(e.status, map[string]any{"requestError": map[string]any{kind: map[string]any{
		"messageId": id, "text": e.text, "variables": []string{variable},
	}}})
}

func (s *Stub) token(c *operatorstub.Call) operatorstub.Response {
	id, secret, _ := c.Request.BasicAuth()
	if id != s.credentials.ClientID || secret != s.credentials.ClientSecret {
		return gatewayError(http.StatusUnauthorized, 41, "Invalid credentials")
	}
	if form, err := url.ParseQuery(string(c.Body)); err != nil || form.Get("grant_type") != "client_credentials" {
		return gatewayError(http.StatusBadRequest, 20, "Invalid body")
	}
	token, life := s.platform.IssueToken(id)
	if !s.platform.Quirk("expires_in_number") {
		life = fmt.Sprint(life)
	}
	return operatorstub.JSON(http.StatusOK, map[string]any{
		"token_type": "Bearer", "access_token": token, "expires_in": life,
	})
}

// authorize returns a refusal, or false if the call shows a token.
func (s *Stub) authorize(r *http.Request) (operatorstub.Response, bool) {
	switch {
	case r.Header.Get("Authorization") == "":
		return gatewayError(http.StatusUnauthorized, 41, "Invalid credentials"), true
	case !s.platform.ValidToken(r, s.credentials.ClientID):
		return gatewayError(http.StatusUnauthorized, 42, "Expired credentials"), true
	}
	return operatorstub.Response{}, false
}

type text struct {
	Message string `json:"message"`
}

type message struct {
	Address       any    `json:"address"` // a text in a request, an array in a response
	SenderAddress string `json:"senderAddress"`
	SenderName    string `json:"senderName,omitempty"`
	Text          text   `json:"outboundSMSTextMessage"`
	ResourceURL   string `json:"resourceURL,omitempty"`
}

type envelope struct {
	Request message `json:"outboundSMSMessageRequest"`
}

// recipient returns the recipient's number with its plus sign, or "".
func (m message) recipient() string {
	address, _ := m.Address.(string)
	number, ok := strings.CutPrefix(address, "tel:+")
	if !ok || len(number) < 8 || strings.Trim(number, "0123456789") != "" {
		return ""
	}
	return "+" + number
}

// identify makes the digest of a send, because the protocol has no key.
func identify(_ *http.Request, body []byte) operatorstub.Keys {
	var e envelope
	_ = json.Unmarshal(body, &e) // send refuses it
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:8])
	return operatorstub.Keys{Key: digest, OrderID: digest, MSISDN: e.Request.recipient()}
}

func (s *Stub) send(c *operatorstub.Call) operatorstub.Response {
	if refused, ok := s.authorize(c.Request); ok {
		return refused
	}
	if s.exceedsRate() {
		return gatewayError(http.StatusTooManyRequests, 53, "Too many requests")
	}
	var e envelope
	if json.Unmarshal(c.Body, &e) != nil {
		return exception("SVC0002", "body")
	}
	m := e.Request
	sender, known := s.sender(c.Request.PathValue("sender"))
	if !known {
		return gatewayError(http.StatusNotFound, 60, "Resource not found")
	}
	if refused, ok := s.check(&m, sender); ok {
		return refused
	}
	s.used[sender.Address] += unitsOf(m.Text.Message)
	return s.accept(c, m, sender)
}

// exceedsRate counts a send and reports whether it is above the rate of the account.
func (s *Stub) exceedsRate() bool {
	now := s.platform.Now()
	s.sends = append(slices.DeleteFunc(s.sends, func(at time.Time) bool { return now.Sub(at) >= time.Second }), now)
	return len(s.sends) > ratePerSecond
}

func (s *Stub) sender(address string) (Sender, bool) {
	i := slices.IndexFunc(s.credentials.Senders, func(sender Sender) bool { return sender.Address == address })
	if i < 0 {
		return Sender{}, false
	}
	return s.credentials.Senders[i], true
}

// check returns a refusal, or false. It removes a sender name that the platform replaces.
func (s *Stub) check(m *message, sender Sender) (operatorstub.Response, bool) {
	_, isText := m.Address.(string)
	units := sender.Units - s.used[sender.Address]
	approved := m.SenderName == "" || slices.Contains(sender.Names, m.SenderName)
	switch {
	case m.SenderAddress != sender.Address:
		return exception("SVC0002", "senderAddress"), true
	case m.Address != nil && !isText:
		return exception("SVC0002", "address"), true
	case m.recipient() == "":
		return exception("SVC0004", "address"), true
	case m.Text.Message == "":
		return exception("SVC0002", "message"), true
	case utf8.RuneCountInString(m.Text.Message) > maxText:
		return exception("SVC0280", fmt.Sprint(maxText)), true
	case utf8.RuneCountInString(m.SenderName) > maxName:
		return exception("SVC0002", "senderName"), true
	case !approved && !s.platform.Quirk("sender_name_replaced"):
		return exception("POL1009", "senderName"), true
	case s.platform.Quirk("bundle_empty") || unitsOf(m.Text.Message) > units ||
		s.platform.OutcomeFor(m.recipient()).Result == operatorstub.NoFunds:
		return exception("POL0001", "no units"), true
	}
	if !approved {
		m.SenderName = ""
	}
	return operatorstub.Response{}, false
}

// accept sends an SMS and its receipts. The units have been taken.
func (s *Stub) accept(c *operatorstub.Call, m message, sender Sender) operatorstub.Response {
	id := s.newUUID()
	c.Key = id
	t := s.platform.Add(&operatorstub.Transaction{
		Operation: send, Key: id, OrderID: c.OrderID, MSISDN: m.recipient(), CallbackURL: s.credentials.ReceiptURL,
		Outcome: s.platform.OutcomeFor(m.recipient()),
	})
	m.Address = []any{m.Address}
	if m.ResourceURL = resourceBase + sender.Address + "/requests/" + id; s.platform.Quirk("no_resource_url") {
		m.ResourceURL = ""
	}
	response := operatorstub.JSON(http.StatusCreated, envelope{m})
	if s.platform.Quirk("off_net_lost") && !strings.HasPrefix(t.MSISDN, sender.Prefix) {
		return response
	}
	if t.Outcome.Result != operatorstub.Refused {
		s.platform.AddEffect(t, "sms")
	}
	receipts := s.receipts(t)
	if t.Outcome.CallbackFirst {
		response.First = receipts
		return response
	}
	if half := (len(receipts) + 1) / 2; half < len(receipts) {
		receipts[half].Wait = terminalDelay - networkDelay
	}
	s.platform.After(networkDelay, func() { s.platform.Send(t, receipts) })
	return response
}

// newUUID returns a UUID of version 4.
func (s *Stub) newUUID() string {
	h := s.platform.NewID(16)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// contracts serves the balance of one country, or of all.
func (s *Stub) contracts(c *operatorstub.Call) operatorstub.Response {
	if refused, ok := s.authorize(c.Request); ok {
		return refused
	}
	country := c.Request.URL.Query().Get("country")
	list := []map[string]any{}
	for _, sender := range s.credentials.Senders {
		if country == "" || country == sender.Country {
			list = append(list, map[string]any{"country": sender.Country, "status": "ACTIVE",
				"availableUnits": sender.Units - s.used[sender.Address],
				"expirationDate": s.platform.Now().AddDate(0, 1, 0).Format(time.RFC3339)})
		}
	}
	return operatorstub.JSON(http.StatusOK, list)
}
