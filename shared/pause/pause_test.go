package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/shared/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		started := time.Now()
		if err := pause.For(ctx, 40*time.Second); err != nil || time.Since(started) != 40*time.Second {
			t.Errorf("a pause of 40 s took %v and returned %v", time.Since(started), err)
		}
		err := pause.For(ctx, 40*time.Second)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != time.Minute {
			t.Errorf("a context of 60 s ended a pause after %v with %v", time.Since(started), err)
		}
	})
}
