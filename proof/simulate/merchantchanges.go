package simulate

import (
	"context"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
)

// merchantState is what an engineer has changed for a merchant; the zero value is nothing.
type merchantState struct {
	token       string // the new access token
	shortLived  shortLivedToken
	suspendedAt time.Time
	limitedAt   time.Time // since when its rate is limited
	movedAt     time.Time // when its provisioned address was changed
	readsFrom   time.Time // begins the second of its last reads
	reads       int
}

// planBusyMerchant lets a merchant read a status again and again, more often than its profile's cache lives, while an
// engineer suspends it, or limits its rate.
func (w *World) planBusyMerchant(length time.Duration) {
	const interval, rounds, atOnce = 20 * time.Second, 21, 3
	s := tape.Draw(w.Tape, "shop", w.shops...)
	o := w.newOrder(s, functionCharge, 10*extraOrders)
	o.start = w.DrawStart(length).Add(time.Minute)
	change := tape.Draw(w.Tape, "change of a busy merchant", w.suspendShortly, w.limitRequests)
	w.engineerAt(o.start.Add(interval/2), "change", func(i *instance) { change(s, i) })
	for number := range rounds * atOnce {
		at := o.start.Add(time.Duration(number/atOnce) * interval)
		w.Kernel.At(at, "status read", func() { w.readStatus(o, readerOwner) })
	}
}

// requestRate is the rate, and the burst, of a limited merchant.
const requestRate = 1

// limitedRate checks that the rate of a merchant is limited (invariant 5): in no second does it get more than its burst
// and its rate. Clocks agree in this history, functions do not wait, and the table of limits responds.
func (c *checker) limitedRate(s *shop) {
	w, now := c.world, time.Now()
	m, r := w.changed[s.Name], w.Rates
	if m.limitedAt.IsZero() || now.Sub(m.limitedAt) <= profileAge || r.Skew+r.Freeze+r.Table > 0 {
		return
	}
	if now.Sub(m.readsFrom) >= time.Second {
		m.readsFrom, m.reads = now, 0
	}
	if m.reads++; m.reads > 2*requestRate {
		c.fail(5, "%s may make %d request a second since %s, and made %d", s.Name, requestRate,
			m.limitedAt.Sub(history.Start), m.reads)
	}
}

// planNewAddress lets an engineer change the provisioned address of a merchant whose server is well, and replay a
// payment before and after that.
func (w *World) planNewAddress(length time.Duration) {
	s := tape.Draw(w.Tape, "shop", w.shops...)
	w.servers[s.host].Faults = &outside.Faults{}
	provisioned := *s
	provisioned.NotifyURL = ""
	o := w.newOrder(&provisioned, functionPay, 10*extraOrders)
	o.start = w.DrawStart(length)
	w.Kernel.At(o.start, "order", func() { w.request(o, ownBody) })
	moved := o.start.Add(tape.Draw(w.Tape, "time of a new address", 10*time.Minute, 26*time.Hour))
	w.BrokenUntil(moved.Add(time.Hour))
	replay := []string{"deliveries", "replay", o.wanted.Key}
	w.engineerAt(moved, "new address", func(i *instance) {
		w.runCommand(i, replay...)
		_ = i.Sleep(context.Background(), 20*time.Second)
		change := []string{"merchant", "change", s.Name, "--notif-url", s.profile.NotifURL + newAddress}
		if _, done := w.runCommand(i, change...); done {
			w.changed[s.Name].movedAt = time.Now()
		}
		w.runCommand(i, replay...)
	})
	w.Kernel.At(moved.Add(10*time.Minute), "replay", func() { w.engineer([][]string{replay}) })
}

// newAddress ends a provisioned address after its change.
const newAddress = "/2"

// checkAddress checks that a replay after a change of the provisioned address does not go to the old one (invariant 8).
func (c *checker) checkAddress(s *shop, receipt outside.Receipt) {
	moved, e := c.world.changed[s.Name].movedAt, c.entries[ledger.Key{Kind: ledger.Payment, ID: receipt.Order}.String()]
	if receipt.URL == s.profile.NotifURL && !moved.IsZero() && c.world.Rates.Freeze == 0 && e != nil &&
		lastReplay(e).After(moved) {
		c.fail(8, "%s: the replay of %s went to %s, which was changed at %s", e.Key, lastReplay(e).Sub(history.Start),
			receipt.URL, moved.Sub(history.Start))
	}
}
