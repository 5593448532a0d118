package simulate

import (
	"strings"
	"time"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// The readers of an order's status.
const (
	readerOwner    = iota // its merchant
	readerForeign         // another merchant
	readerNameless        // a client without a token
	readerCount
)

// readWaits are the times of a status read after the first request of its order.
var readWaits = []time.Duration{
	0, time.Second, 3 * time.Second, 20 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 25 * time.Hour,
	26 * time.Hour, 3 * 24 * time.Hour, 6 * 24 * time.Hour,
}

// drawReads draws clients that read the status of orders. Two of three histories have none.
func (w *World) drawReads() {
	if w.Tape.Choose("clients read the status", 3) != 2 {
		return
	}
	for _, o := range w.orders {
		for range 2 + w.Tape.Choose("reads of one order", 3) {
			wait := readWaits[w.Tape.Choose("time of a read", len(readWaits))]
			reader := readerOwner
			if w.Tape.Choose("not the merchant's own read", 4) == 3 {
				reader = w.Tape.Choose("reader", readerCount)
			}
			w.Kernel.At(o.start.Add(wait), "status read", func() { w.readStatus(o, reader) })
			if reader == readerForeign && o.function == functionPay {
				w.Kernel.At(o.start.Add(wait), "foreign request", func() { w.requestForeign(o) })
			}
		}
	}
}

// readStatus reads the status of an order, and checks what the reader learns.
func (w *World) readStatus(o *order, reader int) {
	if o.isDropped {
		return
	}
	token := map[int]string{readerOwner: w.currentToken(o.shop), readerForeign: w.foreignToken(o.shop)}[reader]
	began, mustRefuse := w.Kernel.Steps(), w.mustRefuse(o.shop, token)
	w.Count("status read: " + []string{"own", "by another merchant", "without a token"}[reader])
	w.invoke(functionStatus, o.wanted.StatusEvent(token, o.key().ID), func(r result) {
		response, came := w.responseOf(functionStatus, r)
		if !came {
			return
		}
		w.Logf("status of %s %s %d for reader %d: %d %s", o.shop.Name, o.function, o.number, reader, response.Status,
			response.OperationStatus)
		w.checker.checkBody(o.shop, []byte(response.Body))
		isAuthentic := response.Status == 200 || response.Status == 404
		if isAuthentic && reader == readerOwner {
			w.checker.limitedRate(o.shop)
		}
		switch {
		case reader != readerOwner:
			w.checker.foreignRead(o, reader, response)
		case isAuthentic && mustRefuse != "" && w.mustRefuse(o.shop, token) != "":
			w.checker.fail(5, "a status read got %d, and its token or merchant was %s", response.Status, mustRefuse)
		case !w.FaultsOn() || !w.Tape.Happens("response lost", w.Rates.LostResponse):
			w.checker.learn(o, began, o.factOfRead(response))
		}
	})
}

// requestForeign sends the request of a payment with the token of another merchant, which must be refused: an order_id
// begins with its merchant's name. The reader of a status is checked in the same way.
func (w *World) requestForeign(o *order) {
	w.Count("request by another merchant")
	w.invoke(o.function, o.wanted.Event(w.foreignToken(o.shop)), func(r result) {
		response, came := w.responseOf(o.function, r)
		if !came {
			return
		}
		w.Logf("%s %s %d by another merchant: %d", o.shop.Name, o.function, o.number, response.Status)
		if response.Status < 400 || response.Status == 409 {
			w.checker.fail(5, "another merchant's request for %s got %d", o.key(), response.Status)
		}
	})
}

// currentToken is the token of a merchant's next read.
func (w *World) currentToken(s *shop) string {
	token := w.changed[s.Name].token
	if ends := w.refused[token]; token == "" || !ends.IsZero() && ends.Before(time.Now()) {
		return s.token
	}
	return token
}

// foreignToken is the token of another merchant.
func (w *World) foreignToken(s *shop) string { return w.currentToken(w.otherShop(s)) }

// key is the key of the order's entry.
func (o *order) key() ledger.Key {
	merchantID := o.shop.profile.ID
	switch o.function {
	case functionCharge:
		return ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(merchantID, o.wanted.Key, o.wanted.Reference)}
	case functionPay:
		return ledger.Key{Kind: ledger.Payment, ID: o.wanted.Key}
	}
	return ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(merchantID, o.wanted.Key)}
}

// foreignRead checks that a reader without a right learns nothing (invariant 5).
func (c *checker) foreignRead(o *order, reader int, r outside.Response) {
	isRefused := r.Status == 401 || reader == readerForeign && (r.Status == 404 || r.Status == 429)
	if !isRefused && r.Status < 500 || strings.Contains(r.Body, o.shop.Name) {
		c.fail(5, "reader %d of %s %s %d got %d: %s", reader, o.shop.Name, o.function, o.number, r.Status, r.Body)
	}
}

// The ranks of facts: no later fact has a lower one.
const (
	rankNothing = iota - 2 // the response has no information about the order
	rankAbsent             // there is no such order
	rankOpen
	rankNetwork // an SMS that was delivered to the network
	rankFinal
)

// fact is something that a merchant has learned about the end of its order. text is its final status.
type fact struct {
	rank int
	text string
	at   int // the kernel's step at which it was known
	// isAccepted is true if the gateway has accepted the order, so that it cannot be absent later.
	isAccepted bool
}

// The texts of facts about a charge.
const (
	textApplied = "applied"
	textRefused = "refused"
)

// factOf is what a response to a request says about the end of an order. A payment's success only accepts it.
func (o *order) factOf(r outside.Response) fact {
	switch classify(o.function, r).kind {
	case responseSuccess:
		if o.function == functionCharge {
			return fact{rank: rankFinal, text: textApplied}
		}
		return fact{rank: rankOpen, isAccepted: true}
	case responseRefused:
		return fact{rank: rankFinal, text: map[string]string{
			functionCharge: textRefused, functionPay: string(ledger.Failed),
			functionSMS: string(ledger.DeliveryImpossible),
		}[o.function]}
	}
	return fact{rank: rankNothing}
}

// factOfRead is what a response to a status read says about the end of an order.
func (o *order) factOfRead(r outside.Response) fact {
	switch {
	case r.Status == 404:
		return fact{rank: rankAbsent}
	case r.Status != 200 && o.function == functionCharge:
		return o.factOf(r)
	case r.Status != 200:
		return fact{rank: rankNothing}
	case o.function == functionCharge && r.OperationStatus == "Charged":
		return fact{rank: rankFinal, text: textApplied}
	}
	return factOfStatus(r.OperationStatus)
}

// factOfStatus is what a status in a read or in a notification says.
func factOfStatus(status string) fact {
	switch {
	case status == string(ledger.DeliveredToNetwork):
		return fact{rank: rankNetwork}
	case ledger.Status(status).Final():
		return fact{rank: rankFinal, text: status}
	}
	return fact{rank: rankOpen}
}

// learn checks a fact that a merchant learned from a request which began at a step. Nothing that it knew before is
// later (invariant 4). No two final statuses differ (invariant 2). A success has its effect (invariant 1).
func (c *checker) learn(o *order, began int, given fact) {
	if given.rank == rankNothing || o.function == functionSMS && c.world.smsRetention != 0 {
		return // the key of an expired SMS may be used again, for another one
	}
	given.at = c.world.Kernel.Steps()
	for _, earlier := range o.facts {
		isOver := earlier.at < began && (earlier.rank > max(given.rank, rankOpen) ||
			earlier.isAccepted && given.rank == rankAbsent)
		switch {
		case earlier.rank == rankFinal && given.rank == rankFinal && earlier.text != given.text:
			c.fail(2, "%s %s %d was %s, and then %s", o.shop.Name, o.function, o.number, earlier.text, given.text)
		case isOver:
			c.fail(4, "%s %s %d had the rank %d (%s), and then %d", o.shop.Name, o.function, o.number, earlier.rank,
				earlier.text, given.rank)
		}
	}
	o.facts = append(o.facts, given)
	e := c.entries[o.key().String()]
	switch {
	case given.text != textApplied && given.text != string(ledger.Successful):
	case e == nil:
		c.fail(7, "%s is a success for its merchant, and has no entry", o.key())
	case e.Merchant.ID != o.shop.profile.ID:
		c.fail(3, "%s is a success for %s, and belongs to another merchant", o.key(), o.shop.Name)
	case !c.hasEffect(e) && !c.world.lied(e.Route.UpstreamKey):
		c.fail(1, "%s is a success for its merchant, and has no effect", o.key())
	}
}

// learnFrom passes a notification that reached its merchant on as a fact.
func (c *checker) learnFrom(s *shop, receipt outside.Receipt) {
	for _, o := range c.world.orders {
		if o.shop.Name == s.Name && o.wanted.Key == receipt.Order && o.function != functionCharge {
			c.learn(o, 0, factOfStatus(receipt.Status))
		}
	}
}
