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
	// maxFailingServerAttempts is how many attempts at a server that fails run side by side, maxSlowServerAttempts at one that takes what it gets,
	// slowly. What finds no place is looked at again some sweeps later: so a merchant's dead server holds up no other
	// merchant, however much is due to it.
	maxFailingServerAttempts = 2
	maxSlowServerAttempts    = workers / 4
	// A merchant can name another server each time, of which nothing is known yet. One whose attempts lasted longer than
	// slowAttemptThreshold maxSlowServerAttempts times in a sweep has maxSlowServerAttempts places in all for the rest of it.
	slowAttemptThreshold   = 3 * time.Second
	failingPostponedSweeps = 5
	slowPostponedSweeps    = 1
)

// deliverNotification claims the head of the outbox, posts it and stores what came of it. While the endpoint is disabled the head is
// parked: its clock stands still, and nothing is dropped (decision "notifications").
func (p *pass) deliverNotification(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	notification := entry.OutboxHead()
	if notification == nil || notification.DeadReason != "" || notification.Parked || notification.NextAttemptAt.After(now) {
		return entry, nil
	}
	target, err := p.Courier.FindTarget(ctx, entry)
	if err != nil {
		return entry, err
	}
	if !target.Enabled() {
		return p.applyChange(ctx, entry, func(e *ledger.Entry) bool { return e.Park() })
	}
	release, acquired := p.acquireServerSlot(target)
	if !acquired {
		return p.applyChange(ctx, entry, func(e *ledger.Entry) bool {
			return e.Postpone(notification.ID, now, now.Add(postponedSweeps(target)*p.SweepInterval))
		})
	}
	startedAt := p.Now()
	defer func() { release(p.Now().Sub(startedAt)) }()
	var claimed *ledger.Notification
	entry, err = p.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		claimed = e.ClaimDelivery(now, now.Add(ledger.FastLease))
		return claimed != nil
	})
	if err != nil || claimed == nil {
		return entry, err
	}
	return p.applyChange(ctx, entry, p.Courier.PostNotification(ctx, entry, *claimed, claimed.Attempts, target, line))
}

// postponedSweeps is the number of sweeps after which what found no place at an endpoint is looked at again.
func postponedSweeps(target delivery.Target) time.Duration {
	if target.Failures == 0 {
		return slowPostponedSweeps
	}
	return failingPostponedSweeps
}

// acquireServerSlot takes one of the few places for attempts at a server whose fast path is closed, whatever their URLs, and for
// those of a merchant whose servers hang, whichever they are; a healthy one has room for all. end gives the place back
// and says how long it was taken.
func (p *pass) acquireServerSlot(target delivery.Target) (release func(elapsed time.Duration), acquired bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	server := target.Server()
	if p.attemptsByServer[server] >= maxConcurrentAttempts(target) {
		return nil, false
	}
	attempts := p.attemptsOf(target.MerchantID)
	if attempts.slowCount >= maxSlowServerAttempts && attempts.running >= maxSlowServerAttempts {
		return nil, false
	}
	p.attemptsByServer[server]++
	attempts.running++
	return func(elapsed time.Duration) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.attemptsByServer[server]--
		attempts.running--
		if elapsed > slowAttemptThreshold {
			attempts.slowCount++
		}
	}, true
}

// maxConcurrentAttempts is how many attempts at a server run side by side.
func maxConcurrentAttempts(target delivery.Target) int {
	switch {
	case target.AllowsFastPath():
		return workers
	case target.Failures == 0:
		return maxSlowServerAttempts
	default:
		return maxFailingServerAttempts
	}
}

// merchantAttempts are a merchant's attempts in a sweep: those that run now, and how many were slow.
type merchantAttempts struct{ running, slowCount int }

// attemptsOf is a merchant's posts; the pass is locked.
func (p *pass) attemptsOf(merchantID string) *merchantAttempts {
	if p.attemptsByMerchant[merchantID] == nil {
		p.attemptsByMerchant[merchantID] = &merchantAttempts{}
	}
	return p.attemptsByMerchant[merchantID]
}

// sendUserSMS claims the purchaser's SMS, sends it and stores what came of it.
func (p *pass) sendUserSMS(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	claimed := false
	entry, err := p.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		claimed = e.ClaimUserSMS(now, now.Add(userSMSLease))
		return claimed
	})
	if err != nil || !claimed {
		return entry, err
	}
	changed := false
	smsChange := p.Courier.SendUserSMS(ctx, entry)
	entry, err = p.applyChange(ctx, entry, func(e *ledger.Entry) bool {
		changed = smsChange(e)
		return changed
	})
	if err == nil && changed && (entry.UserSMS == ledger.UserSMSFailed || entry.UserSMS == ledger.UserSMSUnknown) {
		line.Increment(telemetry.UserSMSFailures)
	}
	return entry, err
}
