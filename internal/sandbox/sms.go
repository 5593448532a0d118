package sandbox

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"mobilegateway/shared/market"
)

const (
	smsAddress       = "acr:X-Operator-ISE2" // specification, SMS request
	maxMessageLength = 160                   // decoded characters (specification, Limits)
)

var senderPattern = regexp.MustCompile(`^tel:\+[0-9]{3,15}$`)

type receiptRequest struct {
	NotifyURL    string `json:"notifyURL"`
	CallbackData string `json:"callbackData,omitempty"`
}

type textMessage struct {
	Message string `json:"message"`
}

type outboundSMS struct {
	Address                []string        `json:"address"`
	SenderAddress          string          `json:"senderAddress"`
	OutboundSMSTextMessage textMessage     `json:"outboundSMSTextMessage"`
	SenderName             string          `json:"senderName"`
	ClientCorrelator       string          `json:"clientCorrelator"`
	ReceiptRequest         *receiptRequest `json:"receiptRequest,omitempty"`
	ResourceURL            string          `json:"resourceURL,omitempty"`
}

type smsBody struct {
	OutboundSMSMessageRequest outboundSMS `json:"outboundSMSMessageRequest"`
}

// postSMS sends once a clientCorrelator; a repeat of one that was accepted is a 409, with the first one's address in
// Location.
func (s *Sandbox) postSMS(w http.ResponseWriter, r *http.Request) {
	var body smsBody
	raw, fault := readBody(w, r, &body)
	m := &body.OutboundSMSMessageRequest
	if fault == nil {
		fault = checkSMS(r, m)
	}
	if fault != nil {
		fault.write(w)
		return
	}
	in := validRequest{
		kind: kindSMS, key: m.ClientCorrelator, messagePart: "outboundSMSMessageRequest.clientCorrelator",
		payer:           r.Header.Get("X-Operator-ISE2"),
		fingerprint:     fingerprint(raw, r.Header.Get("X-Operator-ISE2")),
		fillTransaction: func(t *transaction) { s.fillSMS(t, m) },
	}
	if m.ReceiptRequest != nil {
		in.callbackURL = m.ReceiptRequest.NotifyURL
	}
	s.handleCall(w, r, in)
}

func checkSMS(r *http.Request, m *outboundSMS) *response {
	var c requestChecker
	for _, name := range []string{"X-OAPI-Application-Id", "X-OAPI-Contact-Id"} {
		c.requireHeader(r, name)
	}
	c.requireOneOf("X-OAPI-Resource-Type", r.Header.Get("X-OAPI-Resource-Type"), "SMS_OSM")
	c.requireHeader(r, "gw-alias")
	c.requireHeader(r, "gw-token")
	country, ok := market.ByMCO(r.Header.Get("X-Operator-MCO"))
	if !ok {
		c.requireOneOf("X-Operator-MCO", r.Header.Get("X-Operator-MCO"), market.MCOs()...)
	}
	c.requireHeader(r, "X-Operator-ISE2")
	if len(m.Address) != 1 || m.Address[0] != smsAddress {
		c.fail(invalidAddressResponse(http.StatusBadRequest, "outboundSMSMessageRequest.address"))
	}
	if !senderPattern.MatchString(m.SenderAddress) || !strings.HasPrefix(m.SenderAddress, country.SenderPrefix()) {
		c.fail(invalidAddressResponse(http.StatusBadRequest, m.SenderAddress))
	}
	if r.PathValue("sender") != m.SenderAddress {
		c.fail(invalidAddressResponse(http.StatusNotFound, r.PathValue("sender")))
	}
	c.require("outboundSMSMessageRequest.outboundSMSTextMessage.message", m.OutboundSMSTextMessage.Message)
	if countCharacters(m.OutboundSMSTextMessage.Message) > maxMessageLength {
		a := errorResponse(http.StatusBadRequest, "SVC0280", []string{strconv.Itoa(maxMessageLength)})
		c.fail(&a)
	}
	c.require("outboundSMSMessageRequest.senderName", m.SenderName)
	c.require("outboundSMSMessageRequest.clientCorrelator", m.ClientCorrelator)
	if m.ReceiptRequest != nil {
		c.checkURL("outboundSMSMessageRequest.receiptRequest.notifyURL", m.ReceiptRequest.NotifyURL)
	}
	return c.firstFault
}

func invalidAddressResponse(status int, value string) *response {
	a := errorResponse(status, "SVC0004", []string{value})
	return &a
}

// countCharacters counts the text as it is read: decoded where the whole of it is well-formed RFC 1738, else as it stands
// (decision "sms-text").
func countCharacters(text string) int {
	plain := true
	for _, c := range []byte(text) {
		plain = plain && c > ' ' && c < utf8.RuneSelf
	}
	decoded, err := url.PathUnescape(text)
	if plain && err == nil && utf8.ValidString(decoded) {
		return utf8.RuneCountInString(decoded)
	}
	return utf8.RuneCountInString(text)
}

// fillSMS writes the message and its answer: the request's fields and resourceURL.
func (s *Sandbox) fillSMS(t *transaction, m *outboundSMS) {
	t.Message = &smsDetails{Sender: m.SenderAddress, Address: m.Address[0]}
	if m.ReceiptRequest != nil {
		t.Message.CallbackData = m.ReceiptRequest.CallbackData
	}
	echo := *m
	echo.ResourceURL = s.config.BaseURL + "/smsmessaging/v1/outbound/" + url.QueryEscape(m.SenderAddress) + "/requests/" +
		t.OperatorID + "/deliveryInfos"
	t.Response = createdResponse(echo.ResourceURL, smsBody{echo})
}

type deliveryInfo struct {
	Address        string `json:"address"`
	DeliveryStatus string `json:"deliveryStatus"`
}

// receiptBody is a delivery receipt. Platforms send deliveryInfo as an object or as an array: the sandbox does both.
func receiptBody(t *transaction, status string, array bool) []byte {
	info := deliveryInfo{t.Message.Address, status}
	notification := struct {
		CallbackData string `json:"callbackData,omitempty"`
		DeliveryInfo any    `json:"deliveryInfo"`
	}{t.Message.CallbackData, info}
	if array {
		notification.DeliveryInfo = []deliveryInfo{info}
	}
	return encode(map[string]any{"deliveryInfoNotification": notification})
}

// getDeliveryInfos tells where an SMS stands: 404 for one that was never accepted.
func (s *Sandbox) getDeliveryInfos(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.transactions.all {
		if t.Kind == kindSMS && t.State == accepted && t.OperatorID == r.PathValue("id") {
			list := map[string]any{
				"deliveryInfo": []deliveryInfo{{t.Message.Address, s.deliveryStatus(t)}},
				"resourceURL":  t.Response.Location,
			}
			writeJSON(w, http.StatusOK, map[string]any{"deliveryInfoList": list})
			return
		}
	}
	invalidPartResponse(http.StatusNotFound, "requestId").write(w)
}

// deliveryStatus is the last status whose time has come.
func (s *Sandbox) deliveryStatus(t *transaction) string {
	status, at := messageWaiting, t.FinalAt
	for _, next := range t.behaviour().CallbackStatuses {
		at = at.Add(s.scaleDuration(s.config.ConfirmDelay / 2))
		if !at.After(s.now()) && status != deliveredToTerminal {
			status = next
		}
	}
	return status
}
