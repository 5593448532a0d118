package operators

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// otherAccount is a second account of the platforms with static callbacks, whose secret another party has.
// platformSecret ends the addresses of the own account's.
const (
	platformSecret = "0123456789abcdefSTATICSECRET0123456789"

	otherAccount = "other"
	otherSecret  = "9876543210abcdefOTHERSECRET9876543210"
)

// unreadBody is a callback that no driver can read.
const unreadBody = "<html>{{"

// signedAge is how old a signed callback may be. A later one is refused.
const signedAge = 4 * time.Minute

// callback is one callback of a platform, or of an attacker.
type callback struct {
	method, address, signature string
	body                       []byte
	isForged, isForeign        bool
	repeated                   int
}

// function is the function that a callback is for.
func (b callback) function() string {
	if strings.Contains(b.address, "/accounts/receipts/") {
		return deployment.Receipt
	}
	return deployment.Notif
}

// isOld reports whether a signed callback may be refused because of its age.
func (b callback) isOld() bool {
	stamp, _, _ := strings.Cut(strings.TrimPrefix(b.signature, "t="), ",")
	signed, _ := strconv.ParseInt(stamp, 10, 64)
	return b.signature != "" && time.Since(time.Unix(signed, 0)) > signedAge
}

// The contents of a callback with a fault, beside the true one.
const (
	contentForged = 1 + iota
	contentUnread
	contentContradicting
	contentForeign
	contentCount
)

// callbacks sends the callbacks of the platforms.
type callbacks struct {
	*gateway
	messages *Messages
	rate     int // of faults, per mille
	// repeats is true if a platform sends a callback again whose response came after its patience.
	repeats bool
}

// maxRepeats bounds how often a callback is sent again, each time a second later.
const maxRepeats = 3

// RoundTrip implements http.RoundTripper for the stub's callbacks. It does not wait for the gateway: no timer may.
// So it fits only platforms that call back once, also after an error.
func (c *callbacks) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	copies, wait := 1, time.Duration(0)
	own := callback{
		method: request.Method, address: request.URL.String(), body: body,
		signature: request.Header.Get("Wave-Signature"),
	}
	if c.HappensNow("platform callback fault", c.rate) {
		copies = c.Tape.Choose("copies of the callback", 3)
		wait = tape.Draw(c.Tape, "delay of the callback", 0, time.Minute, 3*time.Hour)
		c.Count("platform: callback lost, late or twice")
		c.addFalse(&own, c.Tape.Choose("content of the callback", contentCount), wait)
	}
	for range copies {
		c.Kernel.At(time.Now().Add(wait), "platform callback", func() { c.send(own) })
	}
	response := outside.Exchange{Status: http.StatusOK}
	response.Connect(request)
	return response.Result(request)
}

// addFalse sends a false callback beside a true one, or makes that one unreadable. A signed one cannot be changed.
func (c *callbacks) addFalse(own *callback, content int, wait time.Duration) {
	other := *own
	switch {
	case content == contentForged:
		other.address, other.isForged = other.address+"x", true
	case own.signature != "":
		return
	case content == contentUnread:
		c.Count("platform: unread callback")
		own.body = []byte(unreadBody)
		return
	case content == contentContradicting:
		if other.body = c.contradict(*own); bytes.Equal(other.body, own.body) {
			return
		}
		c.Count("platform: contradicting callback")
	case content == contentForeign && strings.HasSuffix(other.address, "/stub/"+platformSecret):
		c.Count("platform: callback by another account")
		other.address = strings.TrimSuffix(other.address, "stub/"+platformSecret) + otherAccount + "/" + otherSecret
		other.body, other.isForeign = falsify(other.body), true
	default:
		return
	}
	c.Kernel.At(time.Now().Add(wait), "false callback", func() { c.send(other) })
}

// falsify changes the amount of a payment, or the status of an SMS.
func falsify(body []byte) []byte {
	body = bytes.Replace(body, []byte(`"amount":"`), []byte(`"amount":"9`), 1)
	for _, status := range []ledger.Status{ledger.DeliveredToNetwork, ledger.DeliveredToTerminal} {
		body = bytes.Replace(body, []byte(status), []byte(ledger.DeliveryImpossible), 1)
	}
	return body
}

// contradict is a callback's body with the opposite outcome, or a receipt with an unknown id.
func (c *callbacks) contradict(b callback) []byte {
	if b.function() == deployment.Receipt {
		return bytes.Replace(b.body, []byte(`"callbackData":"`), []byte(`"callbackData":"9`), 1)
	}
	_, row := c.reportedOn(b)
	success, failure := []byte(`"`+row.success+`"`), []byte(`"`+row.failure+`"`)
	switch {
	case row.failure != "" && bytes.Contains(b.body, success):
		return bytes.Replace(b.body, success, failure, 1)
	case row.failure != "":
		return bytes.Replace(b.body, failure, success, 1)
	}
	return b.body
}

// reportedOn is the payment that a callback is about, nil for none, and the row of its platform.
func (c *callbacks) reportedOn(b callback) (*ledger.Entry, Row) {
	_, path, _ := strings.Cut(b.address, "/callbacks/v1/")
	segments := strings.Split(path, "/")
	e := c.Entries.Payment(segments[2])
	if segments[0] == "accounts" {
		row, _ := rowNamed(segments[2])
		e = c.Entries.AtOperator(outside.KindPayment, outside.ParseDocument(b.body).Text(row.reportKey))
	}
	if e == nil {
		return nil, Row{}
	}
	row, _ := RowOf(e)
	return e, row
}

// report is what a callback says. One that is not certain reports on a payment only at the payment's own address.
func (c *callbacks) report(b callback) Report {
	r := Report{
		IsForged: b.isForged, IsForeign: b.isForeign, IsReceipt: b.function() == deployment.Receipt,
		IsUnread: string(b.body) == unreadBody,
	}
	if r.IsReceipt {
		return r
	}
	e, row := c.reportedOn(b)
	isSuccess := bytes.Contains(b.body, []byte(`"`+row.success+`"`))
	switch r.Payment = e; {
	case e == nil || r.IsUnread:
	case isSuccess && row.unconfirmed != "" && bytes.Contains(b.body, []byte(row.unconfirmed)):
		r.IsUnread = true
	case isSuccess:
		r.Status = ledger.Successful
	case row.failure != "" && bytes.Contains(b.body, []byte(`"`+row.failure+`"`)):
		r.Status = ledger.Failed
	}
	if r.IsUnread && !r.IsForeign && !strings.Contains(b.address, "/payments/") {
		r.Payment = nil
	}
	return r
}

// send invokes notif or receipt with a callback.
func (c *callbacks) send(b callback) {
	payload, err := outside.CallbackRequest(b.method, b.address, b.body, "Wave-Signature", b.signature)
	if err != nil {
		c.Fail("%s", err)
		return
	}
	isOwnReceipt, isOld := b.function() == deployment.Receipt && !b.isForged && !b.isForeign, b.isOld()
	if isOwnReceipt {
		c.messages.receipt(b.body, false)
	}
	sentAt := time.Now()
	c.Invoke(b.function(), payload, func(r deployment.Result) {
		c.repeat(b, time.Since(sentAt))
		response, came := c.ResponseOf(b.function(), r)
		if !came {
			return
		}
		c.Logf("platform: the callback (forged: %v, foreign: %v) got %d", b.isForged, b.isForeign, response.Status)
		report := c.report(b)
		report.IsOld, report.Took = isOld, time.Since(sentAt)
		c.observer.PlatformCalledBack(report, response.Status)
		if isOwnReceipt && response.Status == http.StatusOK {
			c.messages.receipt(b.body, true)
		}
	})
}

// repeat sends a callback again if its response took longer than the patience of its platform.
func (c *callbacks) repeat(b callback, took time.Duration) {
	if !c.repeats || b.isForged || b.isForeign || b.repeated >= maxRepeats || b.function() != deployment.Notif {
		return
	}
	e, row := c.reportedOn(b)
	capabilities, _ := operator.FindCapabilities(row.Name)
	if e == nil || capabilities.CallbackPatience == 0 || took <= capabilities.CallbackPatience {
		return
	}
	c.Count("platform: callback repeated")
	b.repeated++
	c.Kernel.At(time.Now().Add(time.Second), "repeated callback", func() { c.send(b) })
}
