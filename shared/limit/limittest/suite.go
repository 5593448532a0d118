// Package limittest is the suite that every store of limits must pass. It ships with nothing.
package limittest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"mobilegateway/shared/limit"
)

// Store is what package limit needs of a store.
type Store interface {
	limit.RateStore
	limit.AmountStore
}

// Run runs the suite. Each case gets an empty store from open.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	cases := map[string]func(*testing.T, Store){
		"a rate":                        rate,
		"a rate's other merchant":       otherMerchant,
		"a transfer":                    transfer,
		"what is left":                  left,
		"marks":                         marks,
		"fences":                        fences,
		"other days and currencies":     others,
		"parallel transfers":            parallel,
		"parallel transfers of one key": once,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// end is when the suite's items expire: far ahead, as a table drops what has expired.
func end() time.Time { return time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC) }

func rate(t *testing.T, s Store) {
	steps := []struct {
		name   string
		move   limit.Move
		stored int64
		moved  bool
	}{
		{"an empty one is not between", limit.Move{Least: 0, Most: 100, Set: 5}, 0, false},
		{"an empty one may be absent", limit.Move{Most: 100, Absent: true, Set: 1_790_000_000_000_000}, 1_790_000_000_000_000, true},
		{"and is there then", limit.Move{Most: 100, Absent: true, Set: 7}, 1_790_000_000_000_000, false},
		{"below", limit.Move{Least: 1_790_000_000_000_001, Most: math.MaxInt64, Set: 7}, 1_790_000_000_000_000, false},
		{"at both ends", limit.Move{Least: 1_790_000_000_000_000, Most: 1_790_000_000_000_000, Add: 200_000}, 1_790_000_000_200_000, true},
		{"set back", limit.Move{Least: 0, Most: math.MaxInt64, Set: 10}, 10, true},
	}
	for _, step := range steps {
		step.move.ExpireAt = end()
		stored, moved, err := s.Move(context.Background(), "m1", step.move)
		if err != nil || stored != step.stored || moved != step.moved {
			t.Errorf("%s: %d, %v, %v", step.name, stored, moved, err)
		}
	}
}

func otherMerchant(t *testing.T, s Store) {
	for _, id := range []string{"m1", "m2"} {
		stored, moved, err := s.Move(context.Background(), id, limit.Move{Absent: true, Set: 5, ExpireAt: end()})
		if err != nil || stored != 5 || !moved {
			t.Errorf("%s: %d, %v, %v", id, stored, moved, err)
		}
	}
}

// of is a transfer of a key of one merchant's day.
func of(key string, from, to, fence, most int64) limit.Transfer {
	return limit.Transfer{
		Spend: limit.Spend{MerchantID: "m1", Currency: "XOF", Day: "2026-11-21", Key: key},
		From:  from, To: to, Fence: fence, Most: most, ExpireAt: end(),
	}
}

// want makes a transfer and compares the result: "made", "sum N" or "mark AMOUNT FENCE".
func want(t *testing.T, s Store, transfer limit.Transfer, result string) {
	t.Helper()
	got, err := s.Transfer(context.Background(), transfer)
	text := fmt.Sprintf("sum %d", got.Sum)
	switch {
	case err != nil:
		text = err.Error()
	case got.Made:
		text = "made"
	case got.Mark != nil:
		text = fmt.Sprintf("mark %d %d", got.Mark.Amount, got.Mark.Fence)
	}
	if text != result {
		t.Errorf("%+v: %s, want %s", transfer, text, result)
	}
}

func transfer(t *testing.T, s Store) {
	want(t, s, of("a", 0, 300, 1, 700), "made")
	want(t, s, of("a", 0, 300, 1, 700), "mark 300 1")
	want(t, s, of("a", 300, 0, 2, 0), "made")
	want(t, s, of("a", 300, 0, 2, 0), "mark 0 2")
	want(t, s, of("a", 0, 300, 3, 0), "made")
	want(t, s, of("a", 300, 500, 3, 300), "made")
	want(t, s, of("b", 0, 1, 1, 499), "sum 500")
}

func left(t *testing.T, s Store) {
	want(t, s, of("a", 0, 300, 1, -1), "sum 0")
	want(t, s, of("a", 0, 300, 1, 0), "made")
	want(t, s, of("b", 0, 300, 1, 299), "sum 300")
	want(t, s, of("b", 0, 300, 1, -5), "sum 300")
	want(t, s, of("b", 0, 300, 1, 300), "made")
	want(t, s, of("c", 0, 300, 1, limit.Unlimited), "made")
	want(t, s, of("d", 0, 1, 1, 899), "sum 900")
}

func marks(t *testing.T, s Store) {
	want(t, s, of("a", 300, 0, 5, 0), "mark 0 0")
	want(t, s, of("a", 300, 300, 5, 0), "mark 0 0")
	want(t, s, of("a", 0, 300, 5, -1), "sum 0")
	want(t, s, of("a", 300, 0, 5, 0), "mark 0 0")
	want(t, s, of("a", 0, 300, 5, 0), "made")
	want(t, s, of("b", 0, 300, 1, 0), "sum 300")
	want(t, s, of("a", 0, 300, 5, 0), "mark 300 5")
	want(t, s, of("a", 200, 0, 5, 0), "mark 300 5")
}

func fences(t *testing.T, s Store) {
	want(t, s, of("a", 0, 300, 5, 0), "made")
	want(t, s, of("a", 300, 0, 4, 0), "mark 300 5")
	want(t, s, of("a", 300, 300, 4, 0), "mark 300 5")
	want(t, s, of("a", 300, 300, 7, 0), "made")
	want(t, s, of("a", 300, 0, 6, 0), "mark 300 7")
	want(t, s, of("a", 300, 0, 7, 0), "made")
	want(t, s, of("a", 0, 300, 6, 0), "mark 0 7")
	want(t, s, of("a", 0, 300, 8, 0), "made")
}

func others(t *testing.T, s Store) {
	want(t, s, of("a", 0, 300, 1, 0), "made")
	day, currency, merchant := of("a", 0, 300, 1, 0), of("b", 0, 300, 1, 0), of("c", 0, 300, 1, 0)
	day.Day, currency.Currency, merchant.MerchantID = "2026-11-22", "XAF", "m2"
	want(t, s, day, "made")
	want(t, s, currency, "made")
	want(t, s, merchant, "made")
}

// side runs a transfer until no other is in its way, and tells whether it was made.
func side(t *testing.T, s Store, transfer limit.Transfer) bool {
	for {
		result, err := s.Transfer(context.Background(), transfer)
		if errors.Is(err, limit.ErrConflict) {
			continue
		}
		if err != nil {
			t.Error(err)
		}
		return result.Made
	}
}

// parallel: exactly as many fit as the limit says, however they race.
func parallel(t *testing.T, s Store) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	made := 0
	for i := range 20 {
		group.Go(func() {
			if side(t, s, of(fmt.Sprint(i), 0, 100, 1, 700-100)) {
				mutex.Lock()
				made++
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if made != 7 {
		t.Errorf("%d were counted, want 7", made)
	}
	want(t, s, of("z", 0, 1, 1, 699), "sum 700")
}

// once: one transaction is counted once, however many count it.
func once(t *testing.T, s Store) {
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { side(t, s, of("a", 0, 100, 1, limit.Unlimited)) })
	}
	group.Wait()
	want(t, s, of("z", 0, 1, 1, 99), "sum 100")
}
