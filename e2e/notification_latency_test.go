package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"
)

const (
	// timedPayments is the number of measured payments, parallelTimed how many are in flight at any time.
	timedPayments = 200
	parallelTimed = 8
	// firstAttemptLimit is the limit for the time from the final status to the first notification.
	firstAttemptLimit = 2 * time.Second
)

// TestNotificationLatency measures the time from a payment's success at the operator to its first notification.
// Callback, getStatus, ledger, stream and relay are in between. 99 of 100 notifications must arrive within two
// seconds.
func TestNotificationLatency(t *testing.T) {
	requireLocalRun(t)
	if testing.Short() {
		t.Skip("the measurement takes several seconds")
	}
	g := startMakeRun(t, t.TempDir(), "PORT=0", "SPEED=60").waitReady(t)
	elapsed := make([]time.Duration, timedPayments)
	forEachParallel(parallelTimed, timedPayments, func(i int) {
		elapsed[i] = measureNotification(t, g, g.Merchant+"_"+g.newID())
	})
	slices.Sort(elapsed)
	p99 := elapsed[len(elapsed)*99/100-1]
	t.Logf("first notification after the final status, %d payments: p50 %s, p99 %s, at most %s", len(elapsed),
		elapsed[len(elapsed)/2], p99, elapsed[len(elapsed)-1])
	if p99 > firstAttemptLimit {
		t.Errorf("p99 is %s, more than %s", p99, firstAttemptLimit)
	}
}

// measureNotification makes one payment and returns the time from the effect at the operator to the notification.
func measureNotification(t *testing.T, g *target, order string) time.Duration {
	retryUntilAccepted(t, g, payment{order: order, msisdn: "+2250700002000"})
	arrived := eventually(t, notificationTimeout, func() (time.Time, error) {
		messages, err := g.inboxMessages(order)
		if err != nil {
			return time.Time{}, err
		}
		if len(messages) == 0 {
			return time.Time{}, errors.New("no notification arrived")
		}
		return messages[0].ReceivedAt, nil
	})
	found, err := g.effectsOf(order, "payment")
	if err != nil || len(found) != 1 {
		t.Errorf("%s: %d effects, %v", order, len(found), err)
		return 0
	}
	return arrived.Sub(found[0].At)
}
