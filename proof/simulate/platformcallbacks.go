package simulate

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// otherAccount is a second account of the platforms with static callbacks, whose secret another party has.
const (
	otherAccount = "other"
	otherSecret  = "9876543210abcdefOTHERSECRET9876543210"
)

// unreadBody is a callback that no driver can read.
const unreadBody = "<html>{{"

// signedAge is how old a signed callback may be. A later one is refused.
const signedAge = 4 * time.Minute

// platformCallback is one callback of a platform, or of an attacker.
type platformCallback struct {
	method, address, signature string
	body                       []byte
	isForged, isForeign        bool // isForeign: another account reports on our payment
}

// function is the function that a callback is for.
func (c platformCallback) function() string {
	if strings.Contains(c.address, "/accounts/receipts/") {
		return functionReceipt
	}
	return functionNotif
}

// The contents of a callback with a fault, beside the true one.
const (
	contentForged = 1 + iota
	contentUnread
	contentContradicting
	contentForeign
	contentCount
)

// RoundTrip implements http.RoundTripper for the stub's callbacks. It does not wait for the gateway: no timer may.
// So it fits only platforms that call back once, also after an error.
func (p *platform) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	w, copies, wait := p.world, 1, time.Duration(0)
	own := platformCallback{
		method: request.Method, address: request.URL.String(), body: body,
		signature: request.Header.Get("Wave-Signature"),
	}
	if w.HappensNow("platform callback fault", p.rate) {
		copies = w.Tape.Choose("copies of the callback", 3)
		wait = []time.Duration{0, time.Minute, 3 * time.Hour}[w.Tape.Choose("delay of the callback", 3)]
		w.Count("platform: callback lost, late or twice")
		p.addFalse(&own, w.Tape.Choose("content of the callback", contentCount), wait)
	}
	for range copies {
		w.Kernel.At(time.Now().Add(wait), "platform callback", func() { p.callBack(own) })
	}
	return (&exchange{Status: http.StatusOK}).Result(request)
}

// addFalse sends a false callback beside a true one, or makes that one unreadable. A signed one cannot be changed.
func (p *platform) addFalse(own *platformCallback, content int, wait time.Duration) {
	w, other := p.world, *own
	switch {
	case content == contentForged:
		other.address, other.isForged = other.address+"x", true
	case own.signature != "":
		return
	case content == contentUnread:
		w.Count("platform: unread callback")
		own.body = []byte(unreadBody)
		return
	case content == contentContradicting:
		if other.body = p.contradict(*own); bytes.Equal(other.body, own.body) {
			return
		}
		w.Count("platform: contradicting callback")
	case content == contentForeign && strings.HasSuffix(other.address, "/stub/"+platformSecret):
		w.Count("platform: callback by another account")
		other.address = strings.TrimSuffix(other.address, "stub/"+platformSecret) + otherAccount + "/" + otherSecret
		other.body, other.isForeign = falsify(other.body), true
	default:
		return
	}
	w.Kernel.At(time.Now().Add(wait), "false callback", func() { p.callBack(other) })
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
func (p *platform) contradict(c platformCallback) []byte {
	if c.function() == functionReceipt {
		return bytes.Replace(c.body, []byte(`"callbackData":"`), []byte(`"callbackData":"9`), 1)
	}
	_, row := p.reportedOn(c)
	success, failure := []byte(`"`+row.success+`"`), []byte(`"`+row.failure+`"`)
	switch {
	case row.failure != "" && bytes.Contains(c.body, success):
		return bytes.Replace(c.body, success, failure, 1)
	case row.failure != "":
		return bytes.Replace(c.body, failure, success, 1)
	}
	return c.body
}

// reportedOn is the payment that a callback is about, nil for none, and the row of its platform.
func (p *platform) reportedOn(c platformCallback) (*ledger.Entry, platformRow) {
	checker, body := p.world.checker, fieldsOf(c.body)
	_, path, _ := strings.Cut(c.address, "/callbacks/v1/")
	segments := strings.Split(path, "/")
	e := checker.entries[ledger.Key{Kind: ledger.Payment, ID: segments[2]}.String()]
	if segments[0] == "accounts" {
		at := slices.IndexFunc(platformRows, func(r platformRow) bool { return r.name == segments[2] })
		e = checker.entries[checker.byUpstream[outside.KindPayment+" "+body(platformRows[at].reportKey)]]
	}
	if e == nil {
		return nil, platformRow{}
	}
	row, _ := platformRowOf(e)
	return e, row
}

// callBack invokes notif or receipt. A forged callback never gets 2xx (invariant 5), and a correct one never 404
// (invariant 8).
func (p *platform) callBack(c platformCallback) {
	w := p.world
	payload, err := outside.CallbackRequest(c.method, c.address, c.body, "Wave-Signature", c.signature)
	if err != nil {
		w.Fail("%s", err)
		return
	}
	stamp, _, _ := strings.Cut(strings.TrimPrefix(c.signature, "t="), ",")
	signed, _ := strconv.ParseInt(stamp, 10, 64)
	isOwnReceipt := c.function() == functionReceipt && !c.isForged && !c.isForeign
	if isOwnReceipt {
		p.messages.receipt(c.body, false)
	}
	isOld := c.signature != "" && time.Since(time.Unix(signed, 0)) > signedAge
	w.invoke(c.function(), payload, func(r result) {
		response, came := w.responseOf(c.function(), r)
		if !came {
			return
		}
		w.Logf("platform: the callback (forged: %v, foreign: %v) got %d", c.isForged, c.isForeign, response.Status)
		switch {
		case c.isForged && response.Status/100 == 2:
			w.checker.fail(5, "a forged callback of a platform got %d", response.Status)
		case response.Status == http.StatusNotFound && !c.isForged && !isOld:
			w.checker.fail(8, "a correct callback of a platform got %d", response.Status)
		case isOwnReceipt && response.Status == http.StatusOK:
			p.messages.receipt(c.body, true)
		case response.Status == http.StatusOK:
			p.accepted(c)
		}
	})
}

// accepted checks a callback that got 200. The payment must have its outcome, as for the gateway's protocol, unless
// another account reported it: that changes nothing (invariant 5).
func (p *platform) accepted(c platformCallback) {
	checker := p.world.checker
	if c.function() == functionReceipt {
		return
	}
	if string(c.body) == unreadBody {
		checker.unreadCallback(c.address)
		return
	}
	e, row := p.reportedOn(c)
	if e == nil {
		return
	}
	isOfOther := func(conflict ledger.Conflict) bool { return conflict.Reason == "amount" }
	if c.isForeign && slices.ContainsFunc(e.Conflicts, isOfOther) {
		checker.fail(5, "%s: a callback of another account was applied", e.Key)
	}
	report := outside.Callback{Kind: outside.KindPayment, Key: e.Route.UpstreamKey}
	isSuccess := bytes.Contains(c.body, []byte(`"`+row.success+`"`))
	switch {
	case c.isForeign:
		return
	case isSuccess && row.unconfirmed != "" && bytes.Contains(c.body, []byte(row.unconfirmed)):
		checker.unreadCallback(c.address)
		return
	case isSuccess:
		report.Status = string(ledger.Successful)
	case row.failure != "" && bytes.Contains(c.body, []byte(`"`+row.failure+`"`)):
		report.Status = string(ledger.Failed)
	}
	checker.accepted = append(checker.accepted, report)
}

// unreadCallback checks that the lookup of a pending payment is due soon after a callback to its own address that
// cannot be read (invariant 8).
func (c *checker) unreadCallback(address string) {
	_, path, _ := strings.Cut(address, "/payments/")
	segments := strings.Split(path, "/")
	if len(segments) < 2 {
		return
	}
	e := c.entries[ledger.Key{Kind: ledger.Payment, ID: segments[1]}.String()]
	isPending := e != nil && e.State == ledger.Done && !e.StatusFinal() && e.Poll.Attempts == 0
	rates := c.world.Rates
	isSmooth := rates.Skew == 0 && rates.Freeze == 0 && rates.Table == 0
	isLate := e != nil && e.Poll.At.After(time.Now().Add(time.Second))
	if isPending && isSmooth && isLate && time.Since(e.ReservedAt) >= 2*time.Second {
		c.fail(8, "%s: an unread callback got 200, and the lookup is due only at %s", e.Key,
			e.Poll.At.Sub(history.Start))
	}
}
