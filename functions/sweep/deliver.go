package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
)

const (
	// userSMSLease is the lease of the claim of one attempt to send the payer's SMS.
	userSMSLease = time.Minute
	// maxFailingServerAttempts bounds the concurrent attempts at a failing server, maxSlowServerAttempts those at a
	// slow one. So a merchant's dead server, with any number of due notifications, does not delay other merchants.
	maxFailingServerAttempts = 2
	maxSlowServerAttempts    = workers / 4
	// slowAttemptThreshold is the duration from which an attempt counts as slow. A merchant can use a new server,
	// without known health, for each order. After maxSlowServerAttempts slow attempts in a sweep, all servers of the
	// merchant together have maxSlowServerAttempts slots.
	slowAttemptThreshold = 3 * time.Second
	// A notification without a slot is postponed by this number of sweeps.
	failingPostponedSweeps = 5
	slowPostponedSweeps    = 1
)

// deliverNotification claims the first notification of the outbox, posts it and stores the result. At a disabled
// endpoint it parks the notification: no attempt is due until the endpoint is enabled again (decision "notifications").
func (p *pass) deliverNotification(
	ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine,
) (*ledger.Entry, error) {
	now := ledger.Timestamp(p.Now())
	notification := entry.OutboxHead()
	if notification == nil || notification.DeadReason != "" || notification.Parked ||
		notification.NextAttemptAt.After(now) {
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

// postponedSweeps returns the number of sweeps until a notification without a slot is due again.
func postponedSweeps(target delivery.Target) time.Duration {
	if target.Failures == 0 {
		return slowPostponedSweeps
	}
	return failingPostponedSweeps
}

// acquireServerSlot reserves a slot for one attempt. A server without a fast path has few slots for all its URLs, and a
// merchant with slow attempts has few for all its servers. release frees the slot; elapsed is the duration of the
// attempt.
func (p *pass) acquireServerSlot(target delivery.Target) (release func(elapsed time.Duration), acquired bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	server := target.Server()
	if p.attemptsByServer[server] >= maxConcurrentAttempts(target) {
		return nil, false
	}
	attempts := p.attemptsByMerchant[target.MerchantID]
	if attempts == nil {
		attempts = &merchantAttempts{}
		p.attemptsByMerchant[target.MerchantID] = attempts
	}
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

// maxConcurrentAttempts returns the number of slots of a server.
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

// merchantAttempts counts a merchant's attempts in a sweep: those in progress, and those that were slow.
type merchantAttempts struct{ running, slowCount int }

// sendUserSMS claims the payer's SMS, sends it and stores the result.
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
