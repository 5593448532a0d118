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
	maxProbes = 2
	maxSlow   = workers / 4
	// A merchant can name another server each time, of which nothing is known yet. One whose attempts lasted longer than
	// slowPost maxSlow times in a sweep has maxSlow places in all for the rest of it.
	slowPost        = 3 * time.Second
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
	began := p.Now()
	defer func() { end(p.Now().Sub(began)) }()
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

// probe takes one of the few places for attempts at a server whose fast path is closed, whatever their URLs, and for
// those of a merchant whose servers hang, whichever they are; a healthy one has room for all. end gives the place back
// and says how long it was taken.
func (p *pass) probe(to delivery.Endpoint) (end func(took time.Duration), free bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	server := to.Server()
	if p.probing[server] >= places(to) {
		return nil, false
	}
	of := p.posting(to.MerchantID)
	if of.slow >= maxSlow && of.now >= maxSlow {
		return nil, false
	}
	p.probing[server]++
	of.now++
	return func(took time.Duration) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.probing[server]--
		of.now--
		if took > slowPost {
			of.slow++
		}
	}, true
}

// places is how many attempts at a server run side by side.
func places(to delivery.Endpoint) int {
	switch {
	case to.FastPath():
		return workers
	case to.Failures == 0:
		return maxSlow
	default:
		return maxProbes
	}
}

// posts are a merchant's attempts in a sweep: those that run now, and how many were slow.
type posts struct{ now, slow int }

// posting is a merchant's posts; the pass is locked.
func (p *pass) posting(merchantID string) *posts {
	if p.posts[merchantID] == nil {
		p.posts[merchantID] = &posts{}
	}
	return p.posts[merchantID]
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
