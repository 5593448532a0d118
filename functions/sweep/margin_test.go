package sweep_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

// A call that hangs ends 3 seconds before the invocation does, so that its outcome is stored.
func TestStoreMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.sweep.Courier.Sender = webhook.NewSender(&http.Client{Transport: c}, time.Hour, time.Now)
		e := c.store("Shop_1", "hanging", "/hanging", false)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := c.sweep.Invoke(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if elapsed := time.Since(began).Round(time.Second); elapsed != 27*time.Second {
			t.Errorf("the sweep lasted %s, want 27 s", elapsed)
		}
		after, err := c.ledger.Get(t.Context(), e.Key)
		if err != nil || after.Outbox.Head().Attempts != 1 || after.Outbox.UnrecordedAttempts != 0 {
			t.Errorf("%+v, %v; want the attempt recorded", after, err)
		}
	})
}

// An entry whose due time is older than its timers gets the right one, without a job. If the write fails, the log line
// has its cause.
func TestOldDueTime(t *testing.T) {
	for name, fails := range map[string]bool{"stored": false, "the write fails": true} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			e := s.StorePendingPayment("DemoShop_1")
			right := e.DueAt
			s.StoreEntry(e)
			e.DueAt = ledger.Timestamp(s.Clock.Now())
			s.Ledger.Overwrite(e)
			if fails {
				s.Ledger.FailNext(storetest.Replace, storetest.FailedBeforeApply)
				right = e.DueAt
			}
			s.runSweep(t)
			if after := s.MustGet(t, e); !after.DueAt.Equal(right) || len(s.Operator.Lookups()) != 0 {
				t.Errorf("due %s after %d lookups, want %s and none", after.DueAt, len(s.Operator.Lookups()), right)
			}
			line := s.LogLines.String()
			if strings.Contains(line, "panic") || strings.Contains(line, `"Cause"`) != fails {
				t.Errorf("write fails: %v, log line %s", fails, line)
			}
		})
	}
}

// A postponed job costs one write, and the next job begins with the entry that it stored.
func TestWritesAfterPostponement(t *testing.T) {
	s := newFixture(t)
	s.StoreFinalPayment("DemoShop_1", ledger.Successful, func(e *ledger.Entry) {
		e.Outbox.Waiting[0].NextAttemptAt, e.UserSMS.At = e.CreatedAt, e.CreatedAt
	})
	s.ProfileStore.Missing = true
	s.runSweep(t)
	if writes := s.Ledger.CallCount(storetest.Replace); writes != 3 {
		t.Errorf("%d writes, want 3: one postpones the notification, two claim and record the SMS", writes)
	}
}

// A lookup counts only its own conflict, not those of earlier reports.
func TestOnlyNewConflictsAreCounted(t *testing.T) {
	s := newFixture(t)
	s.Operator.SetLookupResult(deliverytest.LookupResponse("Successful", operator.StatusReport{Amount: "1"}))
	e := s.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) {
		e.Conflicts = []ledger.Conflict{{Status: ledger.Failed, Reason: "amount", Source: "callback", At: e.CreatedAt}}
	})
	s.advanceUntilDue(t, e)
	s.AssertMetric(t, "StatusConflicts", 1)
	if kept := len(s.MustGet(t, e).Conflicts); kept != 2 {
		t.Errorf("%d conflicts are kept, want 2", kept)
	}
}

// decision "notifications": a lease whose outcome was lost costs no attempt. A dead letter whose attempts are all
// unrecorded counts for the alarm.
func TestDeadLetterWithoutOutcome(t *testing.T) {
	s := newFixture(t)
	e := s.StoreDueNotification("DemoShop_1")
	s.Ledger.FailNext(storetest.Replace, storetest.NoFault, storetest.FailedBeforeApply)
	s.runSweep(t)
	s.AssertReceived(t, 1)
	e = s.MustGet(t, e)
	if attempts := e.Outbox.Head().Attempts; attempts != 0 || e.Outbox.UnrecordedAttempts != 1 {
		t.Errorf("%d attempts and %d unrecorded ones, want 0 and 1", attempts, e.Outbox.UnrecordedAttempts)
	}
	e.Outbox.UnrecordedAttempts = ledger.MaxUnrecordedAttempts
	s.StoreEntry(e)
	s.advanceUntilDue(t, e)
	s.AssertReceived(t, 1)
	s.AssertMetric(t, "DeadLetters", 1)
}
