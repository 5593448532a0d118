package e2e

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// timedPayments are measured, timedAtOnce of them under way at any time.
	timedPayments = 200
	timedAtOnce   = 8
	// noticeWithin is how soon the first notification has to be there after the final status.
	noticeWithin = 2 * time.Second
)

// TestFirstNotification measures, on a local run of its own, the time from the moment at which a payment becomes
// successful at the operator until its first notification has arrived: callback, getStatus, the ledger, its stream and
// the relay in between. 99 of 100 are there within two seconds.
func TestFirstNotification(t *testing.T) {
	needsLocal(t)
	if testing.Short() {
		t.Skip("a measurement of several seconds")
	}
	g := makeRun(t, newDir(t), "PORT=0", "SPEED=60").answering(t)
	orders := make(chan string)
	var merchants sync.WaitGroup
	var mutex sync.Mutex
	var took []time.Duration
	for range timedAtOnce {
		merchants.Go(func() {
			for order := range orders {
				delay := notice(t, g, order)
				mutex.Lock()
				took = append(took, delay)
				mutex.Unlock()
			}
		})
	}
	for range timedPayments {
		orders <- g.Merchant + "_" + g.newID()
	}
	close(orders)
	merchants.Wait()
	slices.Sort(took)
	p99 := took[len(took)*99/100-1]
	t.Logf("first notification after the final status, %d payments: p50 %s, p99 %s, at most %s", len(took), took[len(took)/2], p99, took[len(took)-1])
	if p99 > noticeWithin {
		t.Errorf("p99 is %s, more than %s", p99, noticeWithin)
	}
}

// notice pays and gives the time from the effect at the operator to the arrival of the notification.
func notice(t *testing.T, g *target, order string) time.Duration {
	patient(t, g, payment{order: order, msisdn: "+2250700002000"})
	arrived := eventually(t, toldWithin, func() (time.Time, error) {
		messages, err := g.inbox(order)
		if err != nil {
			return time.Time{}, err
		}
		if len(messages) == 0 {
			return time.Time{}, errors.New("nothing has arrived")
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
