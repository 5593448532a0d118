package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
)

const (
	// userSMSLease is how long a try at the purchaser's SMS is its sweep's alone.
	userSMSLease = time.Minute
	// maxProbes is how many attempts at a server that fails run side by side, maxSlow at one that takes what it gets,
	// slowly. What finds no place is looked at again some sweeps later: so a merchant's dead server holds up no other
	// merchant, however much is due to it.
	maxProbes       = 2
	maxSlow         = workers / 4
	postponedProbes = 5
	postponedSlow   = 1
)

// deliver claims the head of the outbox, posts it and stores what came of it. While the endpoint is disabled the head is
// parked: its clock stands still, and nothing is dropped (decision "notifications").
func (p *pass) deliver(ctx context.Context, entry *ledger.Entry, line *telemetry.Event) (*ledger.Entry, error) {
	now := ledger.Moment(p.Now())
	head := entry.Head()
	if head == nil || head.Dead != "" || head.Parked || head.Next.After(now) {
		return entry, nil
	}
	to, err := p.Courier.Endpoint(ctx, entry)
	if err != nil {
		return entry, err
	}
	if !to.Enabled() {
		return p.change(ctx, entry, func(e *ledger.Entry) bool { return e.Park() })
	}
	end, free := p.probe(to)
	if !free {
		return p.change(ctx, entry, func(e *ledger.Entry) bool {
			return e.Postpone(head.ID, now, now.Add(later(to)*p.Interval))
		})
	}
	defer end()
	var claimed *ledger.Notification
	entry, err = p.change(ctx, entry, func(e *ledger.Entry) bool {
		claimed = e.ClaimDelivery(now, now.Add(ledger.FastLease))
		return claimed != nil
	})
	if err != nil || claimed == nil {
		return entry, err
	}
	return p.change(ctx, entry, p.Courier.Post(ctx, entry, *claimed, claimed.Attempt, to, line))
}

// later is the number of sweeps after which what found no place at an endpoint is looked at again.
func later(to delivery.Endpoint) time.Duration {
	if to.Failures == 0 {
		return postponedSlow
	}
	return postponedProbes
}

// probe takes one of the few places for attempts at a server whose fast path is closed, whatever their URLs; a healthy
// one has room for all. end gives the place back.
func (p *pass) probe(to delivery.Endpoint) (end func(), free bool) {
	if to.FastPath() {
		return func() {}, true
	}
	places := maxProbes
	if to.Failures == 0 {
		places = maxSlow
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	server := to.Server()
	if p.probing[server] >= places {
		return nil, false
	}
	p.probing[server]++
	return func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.probing[server]--
	}, true
}

// userSMS claims the purchaser's SMS, sends it and stores what came of it.
func (p *pass) userSMS(ctx context.Context, entry *ledger.Entry, line *telemetry.Event) (*ledger.Entry, error) {
	now := ledger.Moment(p.Now())
	claimed := false
	entry, err := p.change(ctx, entry, func(e *ledger.Entry) bool {
		claimed = e.ClaimUserSMS(now, now.Add(userSMSLease))
		return claimed
	})
	if err != nil || !claimed {
		return entry, err
	}
	marked := false
	outcome := p.Courier.UserSMS(ctx, entry)
	entry, err = p.change(ctx, entry, func(e *ledger.Entry) bool {
		marked = outcome(e)
		return marked
	})
	if err == nil && marked && (entry.UserSMS == ledger.UserSMSFailed || entry.UserSMS == ledger.UserSMSUnknown) {
		line.Count(telemetry.UserSMSFailures)
	}
	return entry, err
}
