package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// A replay begins the notification anew, but what was known of it before stays in the entry.
func TestReplayRemembersWhatWasBefore(t *testing.T) {
	waiting, network := ledger.MessageWaiting, ledger.DeliveredToNetwork
	told, at := start.Add(time.Minute), start.Add(time.Hour)
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		replay ledger.Status
		want   []ledger.Replayed
	}{
		{"delivered at the second attempt", func(e *ledger.Entry) {
			e.FailedAttempt(id(e, waiting), ledger.Attempt{Number: 1, At: start, Code: 503, Why: "status"}, start)
			e.ClaimDelivery(start, at)
			e.Delivered(id(e, waiting), told)
		}, waiting, []ledger.Replayed{{Status: waiting, At: at, Attempt: 2, ToldAt: told}}},
		{"two delivered", func(e *ledger.Entry) {
			e.Delivered(id(e, waiting), told)
			e.Delivered(id(e, network), told.Add(time.Second))
		}, waiting, []ledger.Replayed{
			{Status: waiting, At: at, Attempt: 1, ToldAt: told}, {Status: network, At: at, Attempt: 1, ToldAt: told.Add(time.Second)},
		}},
		{"given up", func(e *ledger.Entry) {
			e.FailedAttempt(id(e, waiting), ledger.Attempt{Number: 10, At: start, Code: 503, Why: "status"}, start)
			e.DeadLetter(id(e, waiting), "attempts")
		}, waiting, []ledger.Replayed{{Status: waiting, At: at, Attempt: 10, Dead: "attempts"}}},
		{"behind one given up", func(e *ledger.Entry) { e.DeadLetter(id(e, waiting), "attempts") }, network, []ledger.Replayed{
			{Status: waiting, At: at, Dead: "attempts"}, {Status: network, At: at},
		}},
		{"never tried", func(*ledger.Entry) {}, waiting, []ledger.Replayed{{Status: waiting, At: at}}},
		{"no such one", func(*ledger.Entry) {}, ledger.DeliveryImpossible, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := message(waiting, network)
			c.before(e)
			e.Replay(id(e, c.replay), at)
			if len(e.Replays) != len(c.want) {
				t.Fatalf("remembered %+v", e.Replays)
			}
			for i, want := range c.want {
				if e.Replays[i] != want {
					t.Errorf("remembered %+v, want %+v", e.Replays[i], want)
				}
			}
			if e.Clone().Replay(id(e, c.replay), at) && len(e.Replays) != len(c.want) {
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
		e.Delivered(id(e, waiting), last)
		e.Delivered(id(e, network), last)
		if !e.Replay(id(e, waiting), last) {
			t.Fatal("not replayed")
		}
	}
	if len(e.Replays) != ledger.MaxReplays {
		t.Fatalf("%d remembered", len(e.Replays))
	}
	for i, status := range []ledger.Status{waiting, network} {
		if r := e.Replays[i]; r.Status != status || !r.ToldAt.Equal(start) {
			t.Errorf("the first of %s is forgotten: %+v", status, r)
		}
	}
	if r := e.Replays[ledger.MaxReplays-1]; !r.At.Equal(last) || r.Status != network {
		t.Errorf("the last is forgotten: %+v", r)
	}
}
