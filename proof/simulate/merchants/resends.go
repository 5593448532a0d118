package merchants

import (
	"slices"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
)

// resendWaits are the times of a resend after the first request of its order.
var resendWaits = []time.Duration{
	2 * time.Second, 10 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 25 * time.Hour, 3 * 24 * time.Hour,
	4 * 24 * time.Hour, 6 * 24 * time.Hour,
}

// maxResendTries bounds the requests of one resend.
const maxResendTries = 4

// DrawResends draws merchants that have notifications sent again. Two of three histories have none.
func (m *Merchants) DrawResends() {
	if m.Tape.ChooseApart("merchants resend", 3) != 2 {
		return
	}
	m.resendsAtReceipt = m.Tape.Choose("resends while a post is in progress", 2) == 1
	for _, o := range m.Orders {
		for range 1 + m.Tape.Choose("resends of one order", 4) {
			wait := tape.Draw(m.Tape, "time of a resend", resendWaits...)
			m.Kernel.At(o.Start.Add(wait), "resend", func() { m.resendOne(o) })
		}
	}
}

// received passes a notification on. Its merchant may have it sent again at once, while its post is in progress.
func (m *Merchants) received(s *fixture.Shop, receipt outside.Receipt) {
	m.observer.Notified(s, receipt)
	if !m.resendsAtReceipt || !m.FaultsOn() || m.Tape.Choose("resend at the receipt", 4) != 3 {
		return
	}
	for _, o := range m.Orders {
		e := m.Entries.Of(o.Key().String())
		isIt := func(n ledger.Notification) bool { return n.ID == receipt.ID }
		if e != nil && o.Shop.Name == s.Name && slices.ContainsFunc(e.Outbox.Waiting, isIt) {
			m.Count("resend while the post is in progress")
			m.Kernel.At(time.Now(), "resend at the receipt", func() { m.resend(o, receipt.ID, maxResendTries) })
			return
		}
	}
}

// resendOne has a notification of an order sent again: any of those that the order has now. It may do so twice at once.
// Another merchant may try to do so too.
func (m *Merchants) resendOne(o *Order) {
	e := m.Entries.Of(o.Key().String())
	if e == nil || o.isDropped {
		return
	}
	all := slices.Concat(e.Outbox.Delivered, e.Outbox.Waiting)
	if len(all) == 0 {
		m.Count("resend: nothing to send again")
		return
	}
	id := all[m.Tape.Choose("notification to send again", len(all))].ID
	m.resend(o, id, maxResendTries)
	switch m.Tape.Choose("another resend at once", 4) {
	case 2:
		m.Count("resend by another merchant")
		event := outside.ResendEvent(m.foreignToken(o.Shop), id, o.Key().ID)
		m.Invoke(deployment.Resend, event, func(r deployment.Result) {
			if response, came := m.ResponseOf(deployment.Resend, r); came {
				m.observer.RespondedToOther(o, response)
			}
		})
	case 3:
		m.Count("resend twice at once")
		m.resend(o, id, maxResendTries)
	}
}

// Resend is a request to send a notification again, and its response.
type Resend struct {
	WebhookID string
	Began     int // the kernel's step
	Response  outside.Response
	// Refusal is why it had to be refused, "" if it had not.
	Refusal string
}

// resend requests that a notification is sent again. Without a response the merchant repeats the request. Half of the
// requests name the transaction.
func (m *Merchants) resend(o *Order, webhookID string, tries int) {
	token, id := m.currentToken(o.Shop), ""
	if o.Function == deployment.Charge || m.Tape.Choose("resend without the transaction", 2) == 0 {
		id = o.Key().ID
	}
	made := Resend{WebhookID: webhookID, Began: m.Kernel.Steps()}
	refusal := m.refusalSince(o.Shop, token)
	m.Count("resend")
	m.Invoke(deployment.Resend, outside.ResendEvent(token, webhookID, id), func(r deployment.Result) {
		response, came := m.ResponseOf(deployment.Resend, r)
		isLost := !came || m.HappensNow("response lost", m.Rates.LostResponse)
		m.Logf("%s has %s of %s sent again: %d %s, lost %v", o.Shop.Name, webhookID, o.Key(), response.Status,
			response.Reason, isLost)
		if came {
			made.Response, made.Refusal = response, refusal()
			m.Count("resend: " + resendResult(response))
			m.observer.HasResent(o, made)
		}
		if tries > 1 && (isLost || needsRetry(response)) {
			wait := tape.Draw(m.Tape, "wait before the next resend", retryWaits...)
			m.Kernel.At(time.Now().Add(wait), "resend again", func() { m.resend(o, webhookID, tries-1) })
		}
	})
}

// resendResult names a response to a resend.
func resendResult(r outside.Response) string {
	switch {
	case r.Status == 202:
		return "queued"
	case r.Status == 409:
		return "refused, " + r.Reason
	case r.Status == 404:
		return "refused, " + string(ledger.ResendNoNotification)
	}
	return "another response"
}
