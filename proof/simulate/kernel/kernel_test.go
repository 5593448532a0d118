package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/proof/simulate/tape"
)

// history runs three instances of two tasks each, and returns the order of their calls.
func history(t *testing.T, seed uint64) (calls []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(tape.FromSeed(seed))
		for number := range 3 {
			instance := k.NewInstance(fmt.Sprint("f", number))
			instance.Start(func() {
				var group sync.WaitGroup
				for task := range 2 {
					group.Add(1)
					instance.Start(func() {
						defer group.Done()
						instance.Gate("one")
						calls = append(calls, fmt.Sprint(number, task, "one"))
						_ = instance.Sleep(context.Background(), time.Hour)
						calls = append(calls, fmt.Sprint(number, task, "two"))
					})
				}
				group.Wait()
				instance.Gate("end")
				calls = append(calls, fmt.Sprint(number, "end"))
			})
		}
		if err := k.Run(); err != nil {
			t.Error(err)
		}
	})
	return calls
}

func TestSameSeedGivesSameHistory(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(20) {
		first, second := history(t, seed), history(t, seed)
		if !slices.Equal(first, second) {
			t.Fatalf("seed %d gave two histories:\n%v\n%v", seed, first, second)
		}
		if len(first) != 15 {
			t.Fatalf("seed %d made %d calls, want 15: %v", seed, len(first), first)
		}
		orders[strings.Join(first, " ")] = true
	}
	if len(orders) < 15 {
		t.Errorf("20 seeds gave %d orders only", len(orders))
	}
}

func TestCrashEndsTasksAtTheirNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(tape.FromChoices(nil))
		instance, steps := k.NewInstance("f"), []string{}
		instance.Start(func() {
			defer func() { steps = append(steps, "deferred") }()
			instance.Gate("one")
			steps = append(steps, "one")
			instance.Gate("two")
			steps = append(steps, "two")
		})
		k.At(time.Now().Add(time.Second), "crash", func() { instance.Crash() })
		other := k.NewInstance("g")
		other.Start(func() {
			_ = other.Sleep(context.Background(), time.Minute)
			steps = append(steps, "other")
		})
		instance.Freeze()
		if err := k.Run(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(steps, " "); got != "deferred other" {
			t.Errorf("steps %q, want no call of the crashed instance", got)
		}
	})
}

func TestFrozenInstanceWaitsUntilItThaws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(tape.FromChoices(nil))
		instance := k.NewInstance("f")
		var called time.Duration
		start := time.Now()
		instance.Start(func() {
			instance.Freeze()
			instance.Gate("one")
			called = time.Since(start)
		})
		k.At(start.Add(time.Hour), "thaw", instance.Thaw)
		if err := k.Run(); err != nil {
			t.Error(err)
		}
		if called != time.Hour {
			t.Errorf("the call was made after %s, want 1h", called)
		}
	})
}

// A history that does not end within its steps is ended, its tasks too.
func TestMaxSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(tape.FromSeed(1))
		k.MaxSteps = 10
		endless := k.NewInstance("f")
		endless.Start(func() {
			for {
				endless.Gate("call")
			}
		})
		if err := k.Run(); err == nil || endless.Busy() {
			t.Errorf("the error %v, and a task is left: %v", err, endless.Busy())
		}
	})
}

// A timer runs once at its time, and not after stop or in a crashed instance.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(tape.FromChoices(nil))
		instance, crashed, steps := k.NewInstance("f"), k.NewInstance("g"), []string{}
		note := func(text string) func() { return func() { steps = append(steps, text) } }
		instance.Start(func() {
			instance.After(time.Second, note("timer"))
			instance.After(2*time.Second, note("stopped"))()
			crashed.After(2*time.Second, note("crashed"))
			_ = instance.Sleep(context.Background(), 3*time.Second)
			note("end")()
		})
		k.At(time.Now().Add(time.Second), "crash", crashed.Crash)
		if err := k.Run(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(steps, " "); got != "timer end" {
			t.Errorf("steps %q", got)
		}
	})
}

// Begin continues in a crashed instance, for a caller that holds a lock, until its next call.
// A task that sleeps continues when its context is cancelled, at its deadline, or at its own time.
func TestSleepEndsWithItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		cancel, deadline, sleep, want time.Duration
		err                           error
	}{
		"its own time":  {time.Hour, time.Hour, time.Minute, time.Minute, nil},
		"its deadline":  {time.Hour, time.Minute, 2 * time.Minute, time.Minute, context.DeadlineExceeded},
		"is cancelled":  {time.Second, time.Minute, time.Hour, time.Second, context.Canceled},
		"ends together": {time.Minute, time.Hour, time.Minute, time.Minute, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			k, began := kernel.New(tape.FromChoices(nil)), time.Now()
			instance := k.NewInstance("f")
			instance.Start(func() {
				ctx, cancel := context.WithTimeout(context.Background(), c.deadline)
				defer cancel()
				instance.After(c.cancel, cancel)
				err := instance.Sleep(ctx, c.sleep)
				if took := time.Since(began); !errors.Is(err, c.err) || took != c.want {
					t.Errorf("%s: %v after %s; want %v after %s", name, err, took, c.err, c.want)
				}
			})
			if err := k.Run(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBeginContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kernel.New(tape.FromChoices(nil))
		instance, steps := k.NewInstance("f"), []string{}
		instance.Start(func() {
			instance.Crash()
			instance.Begin(func() { instance.Exit() })
			steps = append(steps, "held")
			instance.Gate("call")
			steps = append(steps, "called")
		})
		if err := k.Run(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(steps, " "); got != "held" {
			t.Errorf("steps %q", got)
		}
	})
}
