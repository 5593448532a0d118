// Package pause waits. Code that must be testable without waiting takes For as a value.
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
