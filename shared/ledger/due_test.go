package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

func TestDueIsTheEarliestTimer(t *testing.T) {
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	timers := func() *ledger.Entry {
		return &ledger.Entry{
			Key:  ledger.Key{Kind: ledger.Payment, ID: "Shop_1"},
			Call: ledger.Call{State: ledger.Done, LeaseUntil: at(1).Add(-ledger.LapseMargin)},
			Progress: ledger.Progress{
				Status: ledger.Pending, Poll: ledger.Poll{At: at(2)},
				Claim: ledger.Claim{Status: ledger.Successful, CheckAt: at(3)},
			},
			Outbox: ledger.Outbox{
				Waiting: []ledger.Notification{{ID: "1", NextAttemptAt: at(4)}, {ID: "2", NextAttemptAt: at(-9)}},
			},
			UserSMS: ledger.UserSMS{State: ledger.UserSMSDue, At: at(5)},
		}
	}
	cases := []struct {
		name   string
		change func(*ledger.Entry)
		want   time.Time
	}{
		{"a lease while reserved", func(e *ledger.Entry) { e.State = ledger.Reserved }, at(1)},
		{"a poll", func(*ledger.Entry) {}, at(2)},
		{"no poll of a final payment, nor its claim", func(e *ledger.Entry) { e.Status = ledger.Failed }, at(4)},
		{"a claim, also while reserved", func(e *ledger.Entry) { e.State, e.LeaseUntil = ledger.Reserved, at(9) },
			at(3)},
		{"no claim", func(e *ledger.Entry) { e.Poll.At, e.Claim.Status = time.Time{}, "" }, at(4)},
		{"a parked head's check", func(e *ledger.Entry) { e.Status, e.Outbox.Waiting[0].Parked = ledger.Failed, true },
			at(4)},
		{"one behind a dead one", func(e *ledger.Entry) {
			e.Status, e.Outbox.Waiting[0].DeadReason = ledger.Failed,
				"why"
		},
			at(-9)},
		{"nothing", func(e *ledger.Entry) {
			e.Status, e.Outbox.Waiting, e.UserSMS.State = ledger.Failed, nil, ledger.UserSMSSent
		},
			time.Time{}},
		{"an unknown charge", func(e *ledger.Entry) {
			e.Kind, e.State, e.Claim.Status = ledger.Charge, ledger.Unknown,
				""
		}, at(2)},
		{"a charge that is done", func(e *ledger.Entry) { e.Kind, e.Claim.Status = ledger.Charge, "" }, at(4)},
	}
	for _, c := range cases {
		e := timers()
		c.change(e)
		if e.Reschedule(); !e.DueAt.Equal(c.want) {
			t.Errorf("%s: %s, want %s", c.name, e.DueAt, c.want)
		}
	}
}

// An entry past its retention is not due.
func TestDueEndsWithTheRetention(t *testing.T) {
	for expireAt, want := range map[time.Time]time.Time{
		start.Add(time.Minute):                    {},
		start.Add(time.Minute + time.Millisecond): start.Add(time.Minute),
	} {
		e := pendingPayment()
		e.ExpireAt = expireAt
		if e.Reschedule(); !e.DueAt.Equal(want) {
			t.Errorf("kept until %s: due %s, want %s", expireAt, e.DueAt, want)
		}
	}
}

// An entry leaves the due index at the end of its retention, with each of its timers.
func TestClearTimers(t *testing.T) {
	end := start.Add(time.Hour)
	for name, e := range map[string]*ledger.Entry{
		"a reservation": reserved(ledger.Charge), "a lookup": pendingPayment(), "the payer's SMS": dueUserSMS(),
		"a notification": message(ledger.MessageWaiting, ledger.DeliveredToNetwork),
		"a claim": func() *ledger.Entry {
			e := pendingPayment()
			e.Poll.At = time.Time{}
			claimed(ledger.Successful)(e)
			return e
		}(),
	} {
		e.ExpireAt = end
		if e.ClearTimers(end.Add(-time.Millisecond)) || e.DueAt.IsZero() {
			t.Errorf("%s: cleared before the end of the retention", name)
		}
		if !e.ClearTimers(end) || !e.DueAt.IsZero() || e.ClearTimers(end) {
			t.Errorf("%s: due %s, want it cleared once", name, e.DueAt)
		}
	}
}

// A lookup that is due moves, and the timers that are not due stay.
func TestPostponeLookup(t *testing.T) {
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	next := at(600)
	for name, c := range map[string]struct {
		poll, check, wantPoll, wantCheck time.Time
		postponed                        bool
	}{
		"nothing is due":      {poll: at(61), check: at(61), wantPoll: at(61), wantCheck: at(61)},
		"the poll is due":     {at(60), at(61), next, at(61), true},
		"the claim is due":    {at(61), at(60), at(61), next, true},
		"both are due":        {at(60), at(1), next, next, true},
		"only a claim exists": {time.Time{}, at(60), time.Time{}, next, true},
	} {
		e := pendingPayment()
		e.Poll.At, e.Claim = c.poll, ledger.Claim{Status: ledger.Successful, CheckAt: c.check}
		e.Reschedule()
		if got := e.PostponeLookup(at(60), next); got != c.postponed {
			t.Errorf("%s: postponed %v, want %v", name, got, c.postponed)
		}
		if !e.Poll.At.Equal(c.wantPoll) || !e.Claim.CheckAt.Equal(c.wantCheck) {
			t.Errorf("%s: poll at %s, check at %s", name, e.Poll.At, e.Claim.CheckAt)
		}
		if before := dueAt(e); before.Before(at(60)) || c.postponed && before.Equal(at(60)) {
			t.Errorf("%s: still due at %s", name, before)
		}
	}
}

func TestWakesRelay(t *testing.T) {
	cases := map[string]struct {
		outbox []ledger.Notification
		want   bool
	}{
		"empty":                {nil, false},
		"new":                  {[]ledger.Notification{{}}, true},
		"notified":             {[]ledger.Notification{{RelayNotified: true}}, false},
		"attempted":            {[]ledger.Notification{{Attempts: 1}, {}}, false},
		"dead":                 {[]ledger.Notification{{DeadReason: "why"}}, false},
		"parked":               {[]ledger.Notification{{Parked: true}}, false},
		"new before attempted": {[]ledger.Notification{{}, {Attempts: 1}}, true},
	}
	for name, c := range cases {
		if e := (&ledger.Entry{Outbox: ledger.Outbox{Waiting: c.outbox}}); e.Outbox.WakesRelay() != c.want {
			t.Errorf("%s: %v", name, e.Outbox.WakesRelay())
		}
	}
}

func TestDueShardsAreEven(t *testing.T) {
	counts := make([]int, ledger.DueShardsWritten)
	const keys = 16000
	for i := range keys {
		counts[ledger.DueShard(ledger.Key{Kind: ledger.Payment,
			ID: "Shop_" + time.Unix(int64(i), 0).Format("150405")})]++
	}
	for shard, count := range counts {
		if count < keys/ledger.DueShardsWritten/2 || count > keys/ledger.DueShardsWritten*2 {
			t.Errorf("shard %d has %d of %d", shard, count, keys)
		}
	}
}

func TestMerchantDay(t *testing.T) {
	east := time.FixedZone("east", 3*3600)
	if got := ledger.MerchantDay("m", time.Date(2026, 11, 22, 1, 0, 0, 0, east), 0); got != "m#2026-11-21" {
		t.Errorf("got %s", got)
	}
	if got := ledger.MerchantDay("m", start, 3); got != "m#2026-11-21#3" {
		t.Errorf("the third partition is %s", got)
	}
	if ledger.MerchantDay("", start, 0) != "" || ledger.MerchantDay("m", time.Time{}, 1) != "" {
		t.Error("want none without a merchant or a day")
	}
	if got := ledger.DaySort(start.Add(7 * time.Millisecond)); got != "10:30:00.007" {
		t.Errorf("got %s", got)
	}
}

func TestDayShardsAreEven(t *testing.T) {
	const keys, shards = 8000, 4
	counts := make([]int, shards)
	for i := range keys {
		key := ledger.Key{Kind: ledger.Payment, ID: "Shop_" + time.Unix(int64(i), 0).Format("150405")}
		if ledger.DayShardAmong(key, 1) != 0 || ledger.DayShardAmong(key, 0) != 0 {
			t.Fatal("the one partition is 0")
		}
		counts[ledger.DayShardAmong(key, shards)]++
	}
	for shard, count := range counts {
		if count < keys/shards*3/4 || count > keys/shards*5/4 {
			t.Errorf("partition %d has %d of %d", shard, count, keys)
		}
	}
}
