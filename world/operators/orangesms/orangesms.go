// Package orangesms is a stub of Orange's SMS API: the token call, a send, its delivery receipts and the balance.
// Package kit describes the control paths and the steering by number.
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
// The numbers of package kit mean: 1001 is DeliveryImpossible and never sent, 1002 is POL0001, and 1003 is
// sent and has no receipts. 1006 has each receipt three times. 1007 has DeliveryImpossible after the others.
//
// docs/operators/stubs.md lists the choices that no document states.
package orangesms

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"mobilegateway/world/operators/kit"
)

const (
	networkDelay  = time.Second     // the send to the first receipt
	terminalDelay = 2 * time.Second // the send to the last receipt
	ratePerSecond = 5
	maxText       = 1024 // characters
	maxName       = 11   // characters of senderName
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
	for _, code := range []string{"CIV 225", "SEN 221", "CMR 237", "BFA 226", "COD 243", "TUN 216"} {
		country, prefix, _ := strings.Cut(code, " ")
		c.Senders = append(c.Senders, Sender{Address: "tel:+" + prefix + "0000", Country: country,
			Prefix: "+" + prefix, Units: 10_000, Names: []string{"Stub"}})
	}
	return c
}

// numbers are the stub's own test numbers, because Orange documents none.
var numbers = map[string]kit.Outcome{
	"+2250700002001": {Result: "DeliveryUncertain"},
	"+2250700002002": {Result: "MessageWaiting"},
}

// errorCodes are the errors of the API gateway, by code, and of the platform, by message id.
var errorCodes = []kit.Error{
	kit.NewError("42", http.StatusUnauthorized, "Expired credentials"),
	kit.NewError("41", http.StatusUnauthorized, "Invalid credentials"),
	kit.NewError("50", http.StatusForbidden, "Access denied"),
	kit.NewError("60", http.StatusNotFound, "Resource not found"),
	kit.NewError("53", http.StatusTooManyRequests, "Too many requests"),
	kit.NewError("5", http.StatusServiceUnavailable, "The service is temporarily unavailable"),
	kit.NewError("20", http.StatusBadRequest, "Invalid body"),
	kit.NewError("SVC0001", http.StatusBadRequest, "A service error occurred. Error code is %1."),
	kit.NewError("SVC0002", http.StatusBadRequest, "Invalid input value for message part %1."),
	kit.NewError("SVC0004", http.StatusBadRequest, "No valid addresses provided in message part %1."),
	kit.NewError("SVC0280", http.StatusBadRequest, "Message too long. Maximum length is %1 characters."),
	kit.NewError("POL0001", http.StatusForbidden, "A policy error occurred. Error code is %1."),
	kit.NewError("POL1009", http.StatusForbidden, "The application is not provisioned for %1."),
}

type stub struct {
	*kit.Platform
	Credentials

	// The platform's lock guards these.
	used  map[string]int // units by sender
	sends []time.Time    // within the last second
}

// New makes a stub of one account of the SMS API.
func New(config kit.Config, credentials Credentials) *kit.Platform {
	s := &stub{Credentials: credentials, used: map[string]int{}}
	s.Platform = kit.New(config, kit.Spec{
		Operator: "orangesms", Numbers: numbers, TokenLife: time.Hour, Authorize: s.authorize,
		Errors: errorCodes, ErrorForm: errorForm,
		Operations: []kit.Operation{
			{Pattern: "POST /oauth/v3/token", Name: "token", Open: true, Serve: s.token},
			{Pattern: "POST /smsmessaging/v1/outbound/{sender}/requests", Name: "send", Identify: identify,
				Check: s.checkSend, Serve: s.send},
			{Pattern: "GET /sms/admin/v1/contracts", Name: "contracts", Serve: s.contracts},
		},
		Faults: map[string]kit.Response{"503-html": kit.HTML(http.StatusServiceUnavailable, "Service Unavailable")},
		Quirks: []string{
			"receipts_reordered",    // the receipts come in reverse order
			"receipts_twice",        // each receipt comes twice
			"receipts_lost",         // no receipt comes
			"receipts_network_only", // DeliveredToNetwork is the last receipt
			"bundle_empty",          // every send is refused with POL0001
			"off_net_lost",          // an SMS to another country uses units, but is not sent and has no receipt
			"sender_name_replaced",  // a name that is not approved is left out of the SMS instead of refused
			"no_resource_url",       // the response to a send lacks resourceURL
			"expires_in_number",     // expires_in is a number instead of a text
		},
	})
	return s.Platform
}

func errorForm(e kit.Error, variable string) kit.Response {
	if code, err := strconv.Atoi(e.Name); err == nil {
		return kit.JSON(e.Status, map[string]any{"code": code, "message": e.Message, "description": e.Message})
	}
	kind := map[string]string{"SVC": "serviceException", "POL": "policyException"}[e.Name[:3]]
	return kit.JSON(e.Status, map[string]any{"requestError": map[string]any{kind: map[string]any{
		"messageId": e.Name, "text": e.Message, "variables": []string{variable},
	}}})
}

func (s *stub) token(c *kit.Call) kit.Response {
	return s.Grant(c, kit.Grant{
		Clients: map[string]string{s.ClientID: s.ClientSecret}, BadClient: s.Error("41", ""),
		BadType: s.Error("20", ""), Fields: kit.Fields{"token_type": "Bearer"},
		TextLife: !s.Quirk("expires_in_number"),
	})
}

func (s *stub) authorize(c *kit.Call) kit.Response {
	_, valid := s.TokenOwner(c)
	return kit.FirstOf(
		kit.If(c.Request.Header.Get("Authorization") == "", s.Error("41", "")),
		kit.If(!valid, s.Error("42", "")),
	)
}

type envelope struct {
	Request struct {
		Address       any    `json:"address"` // a text in a request, an array in a response
		SenderAddress string `json:"senderAddress"`
		SenderName    string `json:"senderName,omitempty"`
		Text          struct {
			Message string `json:"message"`
		} `json:"outboundSMSTextMessage"`
		ResourceURL string `json:"resourceURL,omitempty"`
	} `json:"outboundSMSMessageRequest"`
}

// identify makes the digest of a send, because the protocol has no key. The number has its plus sign.
func identify(c *kit.Call) {
	sum := sha256.Sum256(c.Body)
	c.Key = hex.EncodeToString(sum[:8])
	c.OrderID = c.Key
	number, ok := strings.CutPrefix(c.Text("outboundSMSMessageRequest.address"), "tel:+")
	if ok && len(number) >= 8 && kit.IsDigits(number) {
		c.MSISDN = "+" + number
	}
}

// sender returns the contract of the sender in the path. An unknown one has no address.
func (s *stub) sender(c *kit.Call) Sender {
	for _, sender := range s.Senders {
		if sender.Address == c.Request.PathValue("sender") {
			return sender
		}
	}
	return Sender{}
}

// exceedsRate counts a send and reports whether it is above the rate of the account.
func (s *stub) exceedsRate() bool {
	now := s.Now()
	s.sends = append(slices.DeleteFunc(s.sends, func(at time.Time) bool { return now.Sub(at) >= time.Second }), now)
	return len(s.sends) > ratePerSecond
}

// checkSend refuses a send that uses no units.
func (s *stub) checkSend(c *kit.Call) kit.Response {
	var e envelope
	malformed := json.Unmarshal(c.Body, &e) != nil
	m, sender := e.Request, s.sender(c)
	_, isText := m.Address.(string)
	noUnits := unitsOf(m.Text.Message) > s.unitsLeft(sender)
	return kit.FirstOf(
		kit.If(s.exceedsRate(), s.Error("53", "")),
		kit.If(malformed, s.Error("SVC0002", "body")),
		kit.If(sender.Address == "", s.Error("60", "")),
		kit.If(m.SenderAddress != sender.Address, s.Error("SVC0002", "senderAddress")),
		kit.If(m.Address != nil && !isText, s.Error("SVC0002", "address")),
		kit.If(c.MSISDN == "", s.Error("SVC0004", "address")),
		kit.If(m.Text.Message == "", s.Error("SVC0002", "message")),
		kit.If(utf8.RuneCountInString(m.Text.Message) > maxText, s.Error("SVC0280", fmt.Sprint(maxText))),
		kit.If(utf8.RuneCountInString(m.SenderName) > maxName, s.Error("SVC0002", "senderName")),
		kit.If(!sender.approves(m.SenderName) && !s.Quirk("sender_name_replaced"), s.Error("POL1009", "senderName")),
		kit.If(noUnits || s.OutcomeFor(c.MSISDN).Result == kit.NoFunds, s.Error("POL0001", "no units")),
	)
}

func (s Sender) approves(name string) bool { return name == "" || slices.Contains(s.Names, name) }

// send uses units, and sends an SMS and its receipts.
func (s *stub) send(c *kit.Call) kit.Response {
	var e envelope
	_ = json.Unmarshal(c.Body, &e) // checked
	m, sender := &e.Request, s.sender(c)
	s.used[sender.Address] += unitsOf(m.Text.Message)
	c.Key = s.NewUUID()
	t := s.Add(c, &kit.Transaction{Kind: kit.KindSMS, CallbackURL: s.ReceiptURL})
	m.Address = []any{m.Address}
	if !sender.approves(m.SenderName) {
		m.SenderName = "" // the platform replaces it
	}
	if !s.Quirk("no_resource_url") {
		m.ResourceURL = resourceBase + sender.Address + "/requests/" + c.Key
	}
	response := kit.JSON(http.StatusCreated, e)
	if s.Quirk("off_net_lost") && !strings.HasPrefix(t.MSISDN, sender.Prefix) {
		return response
	}
	if t.Outcome.Result != kit.Refused {
		s.AddEffect(t)
	}
	receipts := s.receipts(t)
	if t.Outcome.CallbackFirst {
		s.SendFirst(&response, t, receipts)
		return response
	}
	if half := (len(receipts) + 1) / 2; half < len(receipts) {
		receipts[half].Wait = terminalDelay - networkDelay
	}
	s.SendAfter(networkDelay, t, receipts)
	return response
}

func (s *stub) unitsLeft(sender Sender) int {
	if s.Quirk("bundle_empty") {
		return 0
	}
	return sender.Units - s.used[sender.Address]
}

// contracts serves the balance of one country, or of all.
func (s *stub) contracts(c *kit.Call) kit.Response {
	country := c.Request.URL.Query().Get("country")
	list := []map[string]any{}
	for _, sender := range s.Senders {
		if country == "" || country == sender.Country {
			list = append(list, map[string]any{"country": sender.Country, "status": "ACTIVE",
				"availableUnits": s.unitsLeft(sender),
				"expirationDate": s.Now().AddDate(0, 1, 0).Format(time.RFC3339)})
		}
	}
	return kit.JSON(http.StatusOK, list)
}

// receipts returns the receipts of an SMS in the order in which they are sent.
func (s *stub) receipts(t *kit.Transaction) []kit.Callback {
	var receipts []kit.Callback
	for _, result := range t.Outcome.Results() {
		for _, word := range deliveryStatuses[result] {
			if word == "DeliveredToTerminal" && s.Quirk("receipts_network_only") {
				continue
			}
			receipt := t.Post(map[string]any{"deliveryInfoNotification": map[string]any{"callbackData": t.Key,
				"deliveryInfo": map[string]string{"address": "tel:" + t.MSISDN, "deliveryStatus": word}}})
			if receipts = append(receipts, receipt); s.Quirk("receipts_twice") {
				receipts = append(receipts, receipt)
			}
		}
	}
	if s.Quirk("receipts_reordered") {
		slices.Reverse(receipts)
	}
	if s.Quirk("receipts_lost") {
		return nil
	}
	return receipts
}

// deliveryStatuses are the words of the receipts of a result, in order.
var deliveryStatuses = map[kit.Result][]string{
	kit.Paid:            {"DeliveredToNetwork", "DeliveredToTerminal"},
	kit.Refused:         {"DeliveryImpossible"},
	"DeliveryUncertain": {"DeliveryUncertain"},
	"MessageWaiting":    {"MessageWaiting"},
}

// The alphabet of GSM-7 (3GPP TS 23.038). A character of gsmExtension takes two septets.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtension = "^{}\\[~]|€\f"
)

// unitsOf returns the units of the bundle that a text uses: one for each part, of septets or of UTF-16 units.
func unitsOf(text string) int {
	septets := 0
	for _, c := range text {
		switch {
		case strings.ContainsRune(gsmBasic, c):
			septets++
		case strings.ContainsRune(gsmExtension, c):
			septets += 2
		default:
			return parts(len(utf16.Encode([]rune(text))), 70, 67)
		}
	}
	return parts(septets, 160, 153)
}

func parts(length, single, part int) int {
	if length <= single {
		return 1
	}
	return (length + part - 1) / part
}
