package outside

import (
	"encoding/binary"
	"net/http"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
)

// The results of payments that the platform knows beside those of the kit: the statuses themselves.
const (
	resultCancelled kit.Result = "cancelled"
	resultExpired   kit.Result = "expired"
)

// finalStatuses are the statuses of payments that end, as FinalStatus returns them.
var finalStatuses = map[kit.Result]string{
	kit.Paid: "successful", kit.Refused: "failed", resultCancelled: "cancelled", resultExpired: "expired",
}

// The delivery statuses of receipts.
const (
	deliveredToNetwork  kit.Result = "DeliveredToNetwork"
	deliveredToTerminal kit.Result = "DeliveredToTerminal"
	deliveryImpossible  kit.Result = "DeliveryImpossible"
	deliveryUncertain   kit.Result = "DeliveryUncertain"
)

// finalRefusals are the message ids of permanent refusals. Their status is 403, or 400 for a service exception.
var finalRefusals = []string{"POL0253", "POL1000", "POL0001", "SVC0270"}

const (
	payerDelay        = 2 * time.Second
	expiryDelay       = 24 * time.Hour
	earlyCallbackLead = 2 * time.Second
	receiptInterval   = time.Second
)

// drawOutcome draws what happens to a call that the platform accepts now.
func (o *Operator) drawOutcome(_ string, _ kit.Keys) kit.Outcome {
	in := o.serving
	if in.outcome == nil {
		drawn := o.draw(in)
		in.outcome = &drawn
	}
	drawn, e := *in.outcome, end{}
	switch {
	case drawn.Refusal != "":
		e = end{finalStatuses[kit.Refused], o.now, false}
		o.trace("refused finally with "+drawn.Refusal, in.effectKey)
	case in.kind == KindPayment && drawn.Result != kit.Undecided:
		e = end{finalStatuses[drawn.Result], o.now.Add(drawn.DecidesAfter), true}
		o.trace("accepted a payment that ends as "+e.status+" after "+drawn.DecidesAfter.String(), in.effectKey)
		if drawn.ReversedAfter > 0 {
			o.lies = append(o.lies, lie{in.effectKey, LieReversed})
		}
	}
	o.accepted[in.effectKey] = e
	return drawn
}

// draw draws the outcome of a call. Every third call has the other spellings of the statuses.
func (o *Operator) draw(in *served) kit.Outcome {
	c := in.choose
	o.drawn++
	if in.fault == FinalRefusal {
		return kit.Outcome{Refusal: finalRefusals[c.Choose("operator: message id", len(finalRefusals))]}
	}
	outcome := kit.Outcome{Result: kit.Paid, Reports: []kit.Report{}}
	if in.kind == KindPayment {
		outcome = o.drawPayer(c)
	} else if in.callbackURL != "" {
		outcome.Reports = o.drawReceipts(c)
	}
	if in.callbackURL == "" {
		return outcome
	}
	if o.drawn%3 == 0 {
		outcome = outcome.With(kit.OtherSpellings, kit.Wrong{})
	}
	outcome = outcome.With(kit.CallbackOvertaking, kit.Wrong{})
	wait := time.Duration(0)
	switch timing := o.Faults.pick(c, CallbackTimes); timing {
	case CallbackLate:
		wait = choose(c, "operator: delay of the callback", 10*time.Minute, 6*time.Hour, 49*time.Hour)
		outcome = outcome.With(kit.CallbackLate, kit.Wrong{After: wait})
	case CallbackEarly:
		in.isEarly, outcome.DecidesAfter = true, 0
		for i := range outcome.Reports {
			outcome.Reports[i].After = 0
		}
	case CallbackNever:
		outcome = outcome.With(kit.CallbackNever, kit.Wrong{})
	}
	return o.drawContent(in, outcome, wait)
}

// IsPayersRefusal reports whether a payment fails because its payer refuses it.
func (o *Operator) IsPayersRefusal(orderID string) bool {
	if o == nil {
		return false
	}
	e := o.accepted[effectKey{KindPayment, orderID}]
	return e.isPayers && e.status == finalStatuses[kit.Refused]
}

// drawPayer draws the payer's decision and its time.
func (o *Operator) drawPayer(c Chooser) kit.Outcome {
	outcome := kit.Outcome{Result: kit.Paid, DecidesAfter: payerDelay}
	switch o.Faults.pick(c, Payers) {
	case PayerFails:
		outcome.Result = kit.Refused
	case PayerCancels:
		outcome.Result = resultCancelled
	case PayerExpires:
		outcome.Result, outcome.DecidesAfter = resultExpired, expiryDelay
	case PayerNever:
		return kit.Outcome{Reports: []kit.Report{}}
	case PayerLate:
		outcome.DecidesAfter = choose(c, "operator: time of the payer", time.Minute, time.Hour, 23*time.Hour,
			25*time.Hour, 73*time.Hour, 5*24*time.Hour)
	case PayerInstant:
		outcome.DecidesAfter = 0
	case LieReversed:
		after := choose(c, "operator: time of the reversal", 10*time.Second, 10*time.Minute, 30*time.Hour)
		outcome.Result, outcome.Reports = kit.Refused, []kit.Report{{Result: kit.Paid}}
		return outcome.With(kit.ReversedSuccess, kit.Wrong{After: after})
	}
	outcome.Reports = []kit.Report{{Result: outcome.Result}}
	return outcome
}

// drawReceipts draws the receipts of an SMS.
func (o *Operator) drawReceipts(c Chooser) []kit.Report {
	last := deliveredToTerminal
	switch o.Faults.pick(c, Receipts) {
	case ReceiptImpossible:
		last = deliveryImpossible
	case ReceiptUncertain:
		last = deliveryUncertain
	case ReceiptNetworkOnly:
		return []kit.Report{{Result: deliveredToNetwork}}
	}
	return []kit.Report{{Result: deliveredToNetwork}, {Result: last, After: receiptInterval}}
}

// contentHazards are the hazards of the platform for faults of a callback's content that need nothing more.
var contentHazards = map[Fault]kit.Hazard{
	CallbackTwice: kit.CallbackTwice, CallbackWrongAmount: kit.CallbackWrongAmount,
	CallbackWrongToken: kit.CallbackWrongToken, CallbackGarbage: kit.CallbackGarbage,
}

// drawContent draws the fault of the callbacks' content. wait is the delay of late callbacks.
func (o *Operator) drawContent(in *served, outcome kit.Outcome, wait time.Duration) kit.Outcome {
	claim := kit.Paid // what is not true
	switch {
	case in.kind != KindPayment:
		claim = deliveryImpossible
	case outcome.Result == kit.Paid:
		claim = kit.Refused
	}
	wrong := kit.Wrong{Claim: claim, After: receiptInterval}
	switch fault := o.Faults.pick(in.choose, CallbackContents); fault {
	case NoFault:
	case CallbackReordered:
		if in.kind == KindPayment || len(outcome.Reports) > 1 {
			return outcome.With(kit.CallbackReordered, wrong)
		}
	case CallbackForged:
		hazards := []kit.Hazard{kit.CallbackForged, kit.CallbackForgedKey}
		return outcome.With(hazards[in.choose.Choose("operator: forged part of the token", len(hazards))], wrong)
	case CallbackContradicting:
		wrong.Early = in.choose.Choose("operator: order of the contradicting callback", 2) == 1
		if !wrong.Early {
			wrong.After = wait + 10*time.Second
		}
		if in.kind == KindPayment && outcome.Result == kit.Undecided && !wrong.Early {
			wrong.After, wrong.Early = payerDelay+wrong.After, true // there is no end
		}
		return outcome.With(kit.CallbackContradicting, wrong)
	default:
		return outcome.With(contentHazards[fault], wrong)
	}
	return outcome
}

// choose draws one of the durations; the first is the normal one.
func choose(c Chooser, label string, durations ...time.Duration) time.Duration {
	return durations[c.Choose(label, len(durations))]
}

// content is what a call wants.
type content struct {
	payer, text string // text is that of an SMS
	callbackURL string
	details     string // everything that a repeat must repeat
}

// readContent reads a call. A repeat may have another one-time code and another signature of its callback address.
func readContent(header http.Header, body []byte) content {
	const sms = "outboundSMSMessageRequest"
	d := ParseDocument(body)
	in := content{
		text:        d.Text(sms + ".outboundSMSTextMessage.message"),
		callbackURL: d.Text("notif_url") + d.Text(sms+".receiptRequest.notifyURL"),
	}
	delete(d, "notif_url")
	delete(d, "otp_code")
	if message, isSMS := d[sms].(map[string]any); isSMS {
		delete(message, "receiptRequest")
	}
	parts := []string{string(mustMarshal(d))}
	for _, name := range []string{"mno-name", "channel", "country-code", "gw-alias", "X-Operator-ISE2"} {
		parts = append(parts, strings.Join(header[name], ""))
	}
	in.details = strings.Join(parts, "\x00")
	return in
}

// counter is the platform's source of random names: each is the next number.
type counter struct{ drawn uint64 }

// Read implements io.Reader.
func (n *counter) Read(b []byte) (int, error) {
	n.drawn++
	clear(b)
	binary.BigEndian.PutUint64(b[len(b)-8:], n.drawn)
	return len(b), nil
}
