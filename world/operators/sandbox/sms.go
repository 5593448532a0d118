package sandbox

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"mobilegateway/shared/market"
	"mobilegateway/shared/smstext"
	"mobilegateway/shared/strictjson"
)

const smsAddress = "acr:X-Operator-ISE2" // specification, SMS request

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

// postSMS sends once for each clientCorrelator. A repeat of an accepted SMS is a 409 with its address in Location.
func (s *Sandbox) postSMS(w http.ResponseWriter, r *http.Request) {
	var body smsBody
	m := &body.OutboundSMSMessageRequest
	raw, ok := readRequest(w, r, &body, func(c *requestChecker) { checkSMS(c, m) })
	if !ok {
		return
	}
	receipt := cmp.Or(m.ReceiptRequest, &receiptRequest{})
	recipient := r.Header.Get("X-Operator-ISE2")
	s.handleCall(w, r, validRequest{
		kind: kindSMS, key: m.ClientCorrelator, messagePart: "outboundSMSMessageRequest.clientCorrelator",
		payer: recipient, fingerprint: fingerprint(raw, recipient), callbackURL: receipt.NotifyURL,
		fillTransaction: func(t *transaction) {
			t.Message = &smsDetails{Address: m.Address[0], CallbackData: receipt.CallbackData}
			m.ResourceURL = s.config.BaseURL + "/smsmessaging/v1/outbound/" + url.QueryEscape(m.SenderAddress) +
				"/requests/" + t.OperatorID + "/deliveryInfos"
			t.Response = createdResponse(m.ResourceURL, body)
		},
	})
}

func checkSMS(c *requestChecker, m *outboundSMS) {
	checkAddress := func(status int, value string, valid bool) {
		if !valid {
			refusal := errorResponse("SVC0004", value)
			refusal.Status = status
			c.fail(refusal)
		}
	}
	c.requireHeaders("X-OAPI-Application-Id", "X-OAPI-Contact-Id")
	c.requireOneOf("X-OAPI-Resource-Type", c.Header.Get("X-OAPI-Resource-Type"), "SMS_OSM")
	c.requireHeaders("gw-alias", "gw-token")
	country, ok := market.ByMCO(c.Header.Get("X-Operator-MCO"))
	if !ok {
		c.requireOneOf("X-Operator-MCO", c.Header.Get("X-Operator-MCO"), market.MCOs()...)
	}
	c.requireHeaders("X-Operator-ISE2")
	checkAddress(http.StatusBadRequest, "outboundSMSMessageRequest.address",
		len(m.Address) == 1 && m.Address[0] == smsAddress)
	checkAddress(http.StatusBadRequest, m.SenderAddress,
		senderPattern.MatchString(m.SenderAddress) && strings.HasPrefix(m.SenderAddress, country.SenderPrefix()))
	checkAddress(http.StatusNotFound, c.PathValue("sender"), c.PathValue("sender") == m.SenderAddress)
	c.require("outboundSMSMessageRequest.outboundSMSTextMessage.message", m.OutboundSMSTextMessage.Message)
	if _, characters := smstext.Decode(m.OutboundSMSTextMessage.Message); characters > smstext.MaxCharacters {
		c.fail(errorResponse("SVC0280", strconv.Itoa(smstext.MaxCharacters)))
	}
	c.require("outboundSMSMessageRequest.senderName", m.SenderName)
	c.require("outboundSMSMessageRequest.clientCorrelator", m.ClientCorrelator)
	if m.ReceiptRequest != nil {
		c.checkURL("outboundSMSMessageRequest.receiptRequest.notifyURL", m.ReceiptRequest.NotifyURL)
	}
}

type deliveryInfo struct {
	Address        string `json:"address"`
	DeliveryStatus string `json:"deliveryStatus"`
}

// receiptBody is a delivery receipt. Platforms send deliveryInfo as an object or as an array; the sandbox sends both.
func receiptBody(t *transaction, status string, array bool) []byte {
	info := deliveryInfo{t.Message.Address, status}
	notification := struct {
		CallbackData string `json:"callbackData,omitempty"`
		DeliveryInfo any    `json:"deliveryInfo"`
	}{t.Message.CallbackData, info}
	if array {
		notification.DeliveryInfo = []deliveryInfo{info}
	}
	return strictjson.Marshal(map[string]any{"deliveryInfoNotification": notification})
}

// getDeliveryInfos returns an SMS's delivery status: 404 for one that was never accepted.
func (s *Sandbox) getDeliveryInfos(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.transactions.all {
		if t.Kind == kindSMS && t.State == accepted && t.OperatorID == r.PathValue("id") {
			jsonResponse(http.StatusOK, map[string]any{"deliveryInfoList": map[string]any{
				"deliveryInfo": []deliveryInfo{{t.Message.Address, s.deliveryStatus(t)}},
				"resourceURL":  t.Response.Location,
			}}).write(w)
			return
		}
	}
	invalidPartResponse(http.StatusNotFound, "requestId").write(w)
}

// deliveryStatus returns the last delivery status that is due.
func (s *Sandbox) deliveryStatus(t *transaction) string {
	status, at := messageWaiting, t.FinalAt
	for _, next := range t.behaviour().CallbackStatuses {
		at = at.Add(s.scaleDuration(confirmDelay / 2))
		if !at.After(s.now()) && status != deliveredToTerminal {
			status = next
		}
	}
	return status
}
