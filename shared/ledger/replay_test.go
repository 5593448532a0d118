package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// A replay begins the notification anew, but what was known of it before stays in the entry.
func TestReplayRemembersWhatWasBefore(t *testing.T) {
	waiting, network := ledger.MessageWaiting, ledger.DeliveredToNetwork
	delivered, at := start.Add(time.Minute), start.Add(time.Hour)
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		replay ledger.Status
		want   []ledger.ReplayRecord
	}{
		{"delivered at the second attempt", func(e *ledger.Entry) {
			e.RecordFailedAttempt(id(e, waiting), ledger.FailedAttempt{Number: 1, At: start, HTTPStatus: 503, Reason: "status"}, start)
			e.ClaimDelivery(start, at)
			e.MarkDelivered(id(e, waiting), delivered)
		}, waiting, []ledger.ReplayRecord{{Status: waiting, At: at, Attempts: 2, DeliveredAt: delivered}}},
		{"two delivered", func(e *ledger.Entry) {
			e.MarkDelivered(id(e, waiting), delivered)
			e.MarkDelivered(id(e, network), delivered.Add(time.Second))
		}, waiting, []ledger.ReplayRecord{
			{Status: waiting, At: at, Attempts: 1, DeliveredAt: delivered}, {Status: network, At: at, Attempts: 1, DeliveredAt: delivered.Add(time.Second)},
		}},
		{"given up", func(e *ledger.Entry) {
			e.RecordFailedAttempt(id(e, waiting), ledger.FailedAttempt{Number: 10, At: start, HTTPStatus: 503, Reason: "status"}, start)
			e.DeadLetter(id(e, waiting), "attempts")
		}, waiting, []ledger.ReplayRecord{{Status: waiting, At: at, Attempts: 10, DeadReason: "attempts"}}},
		{"behind one given up", func(e *ledger.Entry) { e.DeadLetter(id(e, waiting), "attempts") }, network, []ledger.ReplayRecord{
			{Status: waiting, At: at, DeadReason: "attempts"}, {Status: network, At: at},
		}},
		{"never tried", func(*ledger.Entry) {}, waiting, []ledger.ReplayRecord{{Status: waiting, At: at}}},
		{"no such one", func(*ledger.Entry) {}, ledger.DeliveryImpossible, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := message(waiting, network)
			c.before(e)
			e.ReplayNotification(id(e, c.replay), at)
			if len(e.Replays) != len(c.want) {
				t.Fatalf("remembered %+v", e.Replays)
			}
			for i, want := range c.want {
				if e.Replays[i] != want {
					t.Errorf("remembered %+v, want %+v", e.Replays[i], want)
				}
			}
			if e.Clone().ReplayNotification(id(e, c.replay), at) && len(e.Replays) != len(c.want) {
				t.Error("a clone shares what is remembered")
			}
		})
	}
}

// However often it is replayed, what is remembered is bounded, and the first delivery of each status is not forgotten.
func TestReplaysAreBounded(t *testing.T) {
	waiting, network := ledger.MessageWaiting, ledger.DeliveredToNetwork
	e := message(waiting, network)
	var last time.Time
	for i := range 2 * ledger.MaxReplays {
		last = start.Add(time.Duration(i) * time.Hour)
		e.MarkDelivered(id(e, waiting), last)
		e.MarkDelivered(id(e, network), last)
		if !e.ReplayNotification(id(e, waiting), last) {
			t.Fatal("not replayed")
		}
	}
	if len(e.Replays) != ledger.MaxReplays {
		t.Fatalf("%d remembered", len(e.Replays))
	}
	for i, status := range []ledger.Status{waiting, network} {
		if r := e.Replays[i]; r.Status != status || !r.DeliveredAt.Equal(start) {
			t.Errorf("the first of %s is forgotten: %+v", status, r)
		}
	}
	if r := e.Replays[ledger.MaxReplays-1]; !r.At.Equal(last) || r.Status != network {
		t.Errorf("the last is forgotten: %+v", r)
	}
}
