// Package pause waits without outliving its context: the one pause of retries and backoffs.
package pause

import (
	"context"
	"time"
)

// For waits for a duration. It returns the context's error if the context ends first, and leaves no timer behind.
func For(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
