// Package pause waits. Code that must be testable without waiting takes For or Until as a value.
package pause

import (
	"context"
	"time"
)

// For waits until d has passed, or returns ctx's error once ctx has ended.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// After calls run in a goroutine of its own once wait has passed, unless stop is called before. stop does not wait for
// a run that has begun.
func After(wait time.Duration, run func()) (stop func()) {
	timer := time.AfterFunc(wait, run)
	return func() { timer.Stop() }
}

// Until waits until done is closed, or returns ctx's error once ctx has ended.
func Until(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
