package relay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

// A relay that freezes before its post is written does not finish it after the fast lease. By then the sweep may have
// delivered the next status (decision "notification-order").
func TestFrozenBeforePost(t *testing.T) {
	for name, c := range map[string]struct {
		freeze time.Duration
		posts  int
	}{
		"in time":                  {ledger.FastLease - 10*time.Second, 1},
		"5 seconds before its end": {ledger.FastLease - 5*time.Second, 0},
		"two minutes":              {2 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			e := s.StoreFinalPayment("DemoShop_1", ledger.Successful)
			s.Courier.Health = frozenHealth{s.HealthStore, func() { s.Clock.Advance(c.freeze) }}
			s.relayEntries(t, e)
			s.AssertReceived(t, c.posts)
			if attempts := len(s.MustGet(t, e).Outbox.FailedAttempts); attempts != 0 {
				t.Errorf("%d failed attempts are counted, want none", attempts)
			}
		})
	}
}

// The relay sends the payer's SMS only while at least 5 seconds of its lease are left: the sweep claims it after that.
func TestUserSMSLease(t *testing.T) {
	for left, want := range map[time.Duration]int{5 * time.Second: 1, 5*time.Second - time.Millisecond: 0} {
		s := newFixture(t)
		e := s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
			e.UserSMS.At = ledger.Timestamp(s.Clock.Now()).Add(left)
		})
		s.relayEntries(t, e)
		s.AssertUserSMSCalls(t, want)
	}
}

// frozenHealth freezes the function while it reads health.
type frozenHealth struct {
	webhook.HealthStore
	freeze func()
}

func (f frozenHealth) Health(ctx context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	f.freeze()
	return f.HealthStore.Health(ctx, endpoint)
}

// decision "notification-order": a repeated record of an earlier status posts nothing, also after the later status.
func TestRepeatedRecordOfEarlierStatus(t *testing.T) {
	s := newFixture(t)
	first := s.StoreMessage("sms-1", ledger.DeliveredToNetwork)
	s.relayEntries(t, first)
	second, err := s.Book.Change(t.Context(), first.Key, func(e *ledger.Entry) (ledger.Transition, error) {
		return ledger.AddReceipt.After(e.ApplyReceipt(ledger.DeliveredToTerminal, ledger.Timestamp(s.Clock.Now()))), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.relayEntries(t, second)
	s.relayEntries(t, first)
	var statuses []string
	for _, received := range s.MerchantServer.Received("") {
		statuses = append(statuses, received.Body)
	}
	if len(statuses) != 2 || !strings.Contains(statuses[0], "DeliveredToNetwork") {
		t.Errorf("posted %q, want DeliveredToNetwork and DeliveredToTerminal once each", statuses)
	}
}
