package merchants

import (
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
)

// The readers of an order's status.
const (
	ReaderOwner    = iota // its merchant
	ReaderForeign         // another merchant
	readerNameless        // a client without a token
	readerCount
)

// readWaits are the times of a status read after the first request of its order.
var readWaits = []time.Duration{
	0, time.Second, 3 * time.Second, 20 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 25 * time.Hour,
	26 * time.Hour, 3 * 24 * time.Hour, 6 * 24 * time.Hour,
}

// DrawReads draws clients that read the status of orders. Two of three histories have none.
func (m *Merchants) DrawReads() {
	if m.Tape.Choose("clients read the status", 3) != 2 {
		return
	}
	for _, o := range m.Orders {
		for range 2 + m.Tape.Choose("reads of one order", 3) {
			wait := tape.Draw(m.Tape, "time of a read", readWaits...)
			reader := ReaderOwner
			if m.Tape.Choose("not the merchant's own read", 4) == 3 {
				reader = m.Tape.Choose("reader", readerCount)
			}
			m.Kernel.At(o.Start.Add(wait), "status read", func() { m.Read(o, reader) })
			if reader == ReaderForeign && o.Function == deployment.Pay {
				m.Kernel.At(o.Start.Add(wait), "foreign request", func() { m.requestForeign(o) })
			}
		}
	}
}

// Read is a read of an order's status.
type Read struct {
	Reader   int
	Began    int // the kernel's step
	IsLost   bool
	Response outside.Response
	// Refusal is why it had to be refused, "" if it had not.
	Refusal string
}

// Read reads the status of an order.
func (m *Merchants) Read(o *Order, reader int) {
	if o.isDropped {
		return
	}
	token := map[int]string{ReaderOwner: m.currentToken(o.Shop), ReaderForeign: m.foreignToken(o.Shop)}[reader]
	began, refusal := m.Kernel.Steps(), m.refusalSince(o.Shop, token)
	m.Count("status read: " + []string{"own", "by another merchant", "without a token"}[reader])
	m.Invoke(deployment.Status, o.Wanted.StatusEvent(token, o.Key().ID), func(r deployment.Result) {
		response, came := m.ResponseOf(deployment.Status, r)
		if !came {
			return
		}
		m.Logf("status of %s %s %d for reader %d: %d %s", o.Shop.Name, o.Function, o.Number, reader, response.Status,
			response.OperationStatus)
		read := Read{Reader: reader, Began: began, Response: response, Refusal: refusal()}
		read.IsLost = reader == ReaderOwner && m.HappensNow("response lost", m.Rates.LostResponse)
		m.observer.HasRead(o, read)
	})
}

// requestForeign sends the request of a payment with the token of another merchant, which must be refused: an order_id
// begins with its merchant's name. The reader of a status is checked in the same way.
func (m *Merchants) requestForeign(o *Order) {
	m.Count("request by another merchant")
	m.Invoke(o.Function, o.Wanted.Event(m.foreignToken(o.Shop)), func(r deployment.Result) {
		response, came := m.ResponseOf(o.Function, r)
		if !came {
			return
		}
		m.Logf("%s %s %d by another merchant: %d", o.Shop.Name, o.Function, o.Number, response.Status)
		m.observer.RespondedToOther(o, response)
	})
}

// foreignToken is the token of another merchant.
func (m *Merchants) foreignToken(s *fixture.Shop) string { return m.currentToken(m.other(s)) }
