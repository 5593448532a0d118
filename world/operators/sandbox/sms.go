package sandbox

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mobilegateway/shared/market"
	"mobilegateway/world/operators/kit"
)

const (
	smsAddress    = "acr:X-Operator-ISE2" // specification, SMS request
	maxCharacters = 160                   // of a decoded message (specification, Limits)
	receiptStep   = confirmDelay / 2
)

// Statuses of an SMS's delivery.
const (
	deliveredToNetwork  = "DeliveredToNetwork"
	deliveredToTerminal = "DeliveredToTerminal"
	deliveryImpossible  = "DeliveryImpossible"
	messageWaiting      = "MessageWaiting"
)

var senderPattern = regexp.MustCompile(`^tel:\+[0-9]{3,15}$`)

type outboundSMS struct {
	Address                []string `json:"address"`
	SenderAddress          string   `json:"senderAddress"`
	OutboundSMSTextMessage struct {
		Message string `json:"message"`
	} `json:"outboundSMSTextMessage"`
	SenderName       string          `json:"senderName"`
	ClientCorrelator string          `json:"clientCorrelator"`
	ReceiptRequest   *receiptRequest `json:"receiptRequest,omitempty"`
	ResourceURL      string          `json:"resourceURL,omitempty"`
}

type receiptRequest struct {
	NotifyURL    string `json:"notifyURL"`
	CallbackData string `json:"callbackData,omitempty"`
}

type smsBody struct {
	OutboundSMSMessageRequest outboundSMS `json:"outboundSMSMessageRequest"`
}

// parseSMS reads an SMS. The operator sends once for each clientCorrelator. A repeat of an accepted SMS is a 409 with
// its address in Location.
func (s *Sandbox) parseSMS(c *kit.Call, in *request) error {
	var body smsBody
	err := json.Unmarshal(c.Body, &body)
	m := &body.OutboundSMSMessageRequest
	receipt := cmp.Or(m.ReceiptRequest, &receiptRequest{})
	in.key, in.messagePart = m.ClientCorrelator, "outboundSMSMessageRequest.clientCorrelator"
	in.payer, in.callbackURL = c.Request.Header.Get("X-Operator-ISE2"), receipt.NotifyURL
	in.fingerprint = fingerprint(c.Fields, in.payer)
	in.check = func(c *requestChecker) { checkSMS(c, m) }
	in.fillTransaction = func(t transaction) {
		t.Message = &smsDetails{Address: m.Address[0], CallbackData: receipt.CallbackData}
		m.ResourceURL = s.config.BaseURL + "/smsmessaging/v1/outbound/" + url.QueryEscape(m.SenderAddress) +
			"/requests/" + t.Reference + "/deliveryInfos"
		t.Response = keep(createdResponse(m.ResourceURL, body))
	}
	return err
}

func checkSMS(c *requestChecker, m *outboundSMS) {
	checkAddress := func(status int, value string, valid bool) {
		if !valid {
			c.refuse(withStatus(status, errorResponse("SVC0004", value)))
		}
	}
	c.requireHeaders("X-OAPI-Application-Id", "X-OAPI-Contact-Id")
	c.requireOneOf("X-OAPI-Resource-Type", c.header("X-OAPI-Resource-Type"), "SMS_OSM")
	c.requireHeaders("gw-alias", "gw-token")
	country, ok := market.ByMCO(c.header("X-Operator-MCO"))
	if !ok {
		c.requireOneOf("X-Operator-MCO", c.header("X-Operator-MCO"), market.MCOs()...)
	}
	c.requireHeaders("X-Operator-ISE2")
	checkAddress(http.StatusBadRequest, "outboundSMSMessageRequest.address",
		len(m.Address) == 1 && m.Address[0] == smsAddress)
	checkAddress(http.StatusBadRequest, m.SenderAddress,
		senderPattern.MatchString(m.SenderAddress) && strings.HasPrefix(m.SenderAddress, country.SenderPrefix()))
	sender := c.Request.PathValue("sender")
	checkAddress(http.StatusNotFound, sender, sender == m.SenderAddress)
	c.require("outboundSMSMessageRequest.outboundSMSTextMessage.message", m.OutboundSMSTextMessage.Message)
	if charactersOf(m.OutboundSMSTextMessage.Message) > maxCharacters {
		c.refuse(errorResponse("SVC0280", strconv.Itoa(maxCharacters)))
	}
	c.require("outboundSMSMessageRequest.senderName", m.SenderName)
	c.require("outboundSMSMessageRequest.clientCorrelator", m.ClientCorrelator)
	if m.ReceiptRequest != nil {
		c.checkURL("outboundSMSMessageRequest.receiptRequest.notifyURL", m.ReceiptRequest.NotifyURL)
	}
}

// charactersOf returns the length of a message. It is URL-escaped (RFC 1738); a text that is not is taken literally.
func charactersOf(message string) int {
	isGraphic := strings.IndexFunc(message, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
	if text, err := url.PathUnescape(message); isGraphic && err == nil && utf8.ValidString(text) {
		message = text
	}
	return utf8.RuneCountInString(message)
}

// receiptsOf returns the delivery receipts of an SMS.
func receiptsOf(t transaction) []kit.Report {
	o := t.Outcome
	words, times := []string{deliveredToNetwork, deliveredToTerminal}, max(1, len(o.Callbacks))
	switch {
	case o.Reports != nil:
		return o.Reports
	case o.Result == kit.Undecided:
		return nil
	case o.Result == kit.Refused:
		words = []string{deliveryImpossible}
	case times > 1 && o.Callbacks[1] != o.Result: // contradicting callbacks
		words, times = []string{deliveredToTerminal, deliveredToNetwork}, 1
	}
	if t.InjectedFirst {
		slices.Reverse(words)
	}
	var reports []kit.Report
	for i := range len(words) * times {
		at := receiptStep * time.Duration(i+1)
		reports = append(reports, kit.Report{Result: kit.Result(words[i/times]), After: at})
	}
	return reports
}

type deliveryInfo struct {
	Address        string `json:"address"`
	DeliveryStatus string `json:"deliveryStatus"`
}

// receiptBody is a delivery receipt. Platforms send deliveryInfo as an object or as an array; the sandbox sends both.
func receiptBody(t transaction, status string, array bool) []byte {
	info := deliveryInfo{t.Message.Address, status}
	notification := struct {
		CallbackData string `json:"callbackData,omitempty"`
		DeliveryInfo any    `json:"deliveryInfo"`
	}{t.Message.CallbackData, info}
	if array {
		notification.DeliveryInfo = []deliveryInfo{info}
	}
	return marshal(map[string]any{"deliveryInfoNotification": notification})
}

// getDeliveryInfos returns an SMS's delivery status: 404 for one that was never accepted.
func (s *Sandbox) getDeliveryInfos(c *kit.Call) kit.Response {
	for _, k := range s.Transactions() {
		if t := of(k); t.Kind == kindSMS && t.Status == accepted && t.Reference == c.Request.PathValue("id") {
			return jsonResponse(http.StatusOK, map[string]any{"deliveryInfoList": map[string]any{
				"deliveryInfo": []deliveryInfo{{t.Message.Address, s.deliveryStatus(t)}},
				"resourceURL":  t.Response.Location,
			}})
		}
	}
	return invalidPartResponse(http.StatusNotFound, "requestId")
}

// deliveryStatus returns the last delivery status that is due.
func (s *Sandbox) deliveryStatus(t transaction) string {
	status := messageWaiting
	for _, r := range receiptsOf(t) {
		if !t.EndsAt.Add(s.Scaled(r.After)).After(s.Now()) && status != deliveredToTerminal {
			status = string(r.Result)
		}
	}
	return status
}
