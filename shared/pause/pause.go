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

// Until waits until done is closed, or returns ctx's error once ctx has ended.
func Until(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
