package outside

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signatureTolerance is the greatest difference between a notification's timestamp and the merchant's clock.
const signatureTolerance = 5 * time.Minute

// Receipt is one notification that reached a merchant's server.
type Receipt struct {
	ID     string // webhook-id
	URL    string
	Order  string // order-id of a payment, callbackData of an SMS
	Status string
	Body   []byte
	At     time.Time
	// Signed is true if the signature is valid. The gateway must never send an unsigned notification.
	Signed bool
	// Processed is true if the server acted on the notification, also if the gateway cannot know it.
	Processed bool
	// Acknowledged is true if the gateway gets a 2xx response, unless it stops waiting during the delay.
	Acknowledged bool
	// Fault is what happened, or NoFault.
	Fault Fault
}

// MerchantServer is the server that receives a merchant's notifications. Set its fields before the first call.
type MerchantServer struct {
	// Name is the merchant's name, for Trace.
	Name string
	// Secrets are the valid signing secrets as the merchant got them, "whsec_" and base64.
	Secrets []string
	// Faults are the rates of the history; required.
	Faults *Faults
	// Outages overrule the rates.
	Outages []Outage
	// Trace receives one line for each notification; nil discards them.
	Trace func(string)
	// OnReceipt receives each notification that reaches the server; nil discards them.
	OnReceipt func(Receipt)

	received []Receipt
}

// downFaults are the faults of a server that is down.
var downFaults = []Fault{
	ConnectRefused, ServerErrorBefore, HangBefore, ResetBefore, Redirected, Rejected, Throttled, EndpointGone,
}

// PlanHealth decides before a history when the server is down: up to two outages within the horizon, each with the rate
// of ServerDown.
func (s *MerchantServer) PlanHealth(start time.Time, horizon time.Duration, c Chooser) {
	const parts = 8 // of the horizon in which a window can begin
	for range 2 {
		if s.Faults.pick(c, MerchantServers) == NoFault {
			return
		}
		fault := downFaults[c.Choose("merchant: kind of failure", len(downFaults))]
		from := start.Add(horizon / parts * time.Duration(c.Choose("merchant: start of the failure", parts)))
		length := choose(c, "merchant: length of the failure", time.Minute, time.Hour, 24*time.Hour, 4*24*time.Hour)
		s.Outages = append(s.Outages, Outage{Window: Window{from, from.Add(length)}, Fault: fault})
	}
}

// Serve handles one notification that reaches the server now.
func (s *MerchantServer) Serve(now time.Time, request *http.Request, body []byte, c Chooser) Exchange {
	fault := s.faultAt(now, c)
	row := faultTable[fault]
	if row.response != nil && row.response.Failure == ConnectionRefused {
		s.trace("refused a connection")
		return *row.response
	}
	receipt := readReceipt(request, body)
	receipt.At, receipt.Fault, receipt.Signed = now, fault, s.verify(now, request.Header, body)
	receipt.Processed = receipt.Signed && !row.isLost
	receipt.Acknowledged = receipt.Processed && row.response == nil
	s.received = append(s.received, receipt)
	if s.OnReceipt != nil {
		s.OnReceipt(receipt)
	}
	s.trace(receipt.String())
	switch {
	case !receipt.Signed:
		return newResponse(http.StatusUnauthorized, "invalid signature")
	case fault == Throttled:
		return newResponse(http.StatusTooManyRequests, "", "Retry-After", drawRetryAfter(now, c))
	case row.response != nil:
		return *row.response
	}
	response := newResponse(http.StatusOK, "OK")
	if fault == SlowAfter {
		response.Delay = choose(c, "merchant: delay", 5*time.Second, 14*time.Second, time.Minute)
	}
	return response
}

// drawRetryAfter draws the text of a Retry-After header.
func drawRetryAfter(now time.Time, c Chooser) string {
	date := now.Add(10 * time.Minute).UTC().Format(http.TimeFormat)
	texts := []string{"1", "120", "86400", "99999999999999999999", date, "soon"}
	return texts[c.Choose("merchant: Retry-After", len(texts))]
}

func (s *MerchantServer) faultAt(now time.Time, c Chooser) Fault {
	for _, outage := range s.Outages {
		if outage.Contains(now) {
			s.Faults.count(Notifications, outage.Fault)
			return outage.Fault
		}
	}
	return s.Faults.pick(c, Notifications)
}

// readReceipt reads what a notification is about. A body of another form gives empty texts.
func readReceipt(request *http.Request, body []byte) Receipt {
	const delivery = "deliveryInfoNotification."
	notification := ParseDocument(body)
	return Receipt{
		ID: request.Header.Get("webhook-id"), URL: request.URL.String(), Body: body,
		Order:  notification.Text("order-id") + notification.Text(delivery+"callbackData"),
		Status: notification.Text("status") + notification.Text(delivery+"deliveryInfo.deliveryStatus"),
	}
}

// verify checks a signature as docs/merchants.md describes it, independently of the gateway's own code.
func (s *MerchantServer) verify(now time.Time, header http.Header, body []byte) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" || now.Sub(time.Unix(seconds, 0)).Abs() > signatureTolerance {
		return false
	}
	sent := strings.Fields(header.Get("webhook-signature"))
	for _, secret := range s.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			continue
		}
		hash := hmac.New(sha256.New, key)
		hash.Write([]byte(id + "." + timestamp + "."))
		hash.Write(body)
		expected := "v1," + base64.StdEncoding.EncodeToString(hash.Sum(nil))
		if slices.Contains(sent, expected) {
			return true
		}
	}
	return false
}

// Received lists the notifications that reached the server, in the order of their arrival.
func (s *MerchantServer) Received() []Receipt { return slices.Clone(s.received) }

// Acknowledged reports whether a notification with an id got a 2xx response.
func (s *MerchantServer) Acknowledged(id string) bool {
	return slices.ContainsFunc(s.received, func(r Receipt) bool { return r.ID == id && r.Acknowledged })
}

// String describes the receipt in a story.
func (r Receipt) String() string {
	text := "received " + r.ID + " of " + r.Order + ": " + r.Status
	switch {
	case !r.Signed:
		return text + ", not signed"
	case r.Fault != NoFault:
		return text + ", fault: " + string(r.Fault)
	}
	return text
}

func (s *MerchantServer) trace(text string) {
	if s.Trace != nil {
		s.Trace("merchant " + s.Name + ": " + text)
	}
}
