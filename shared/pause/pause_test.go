package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/shared/pause"
)

func TestForWaitsOrEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := pause.For(ctx, 2*time.Second); err != nil || time.Since(started) != 2*time.Second {
			t.Errorf("a pause of 2 s took %s, error %v", time.Since(started), err)
		}
		err := pause.For(ctx, time.Hour)
		if waited := time.Since(started); !errors.Is(err, context.DeadlineExceeded) || waited != 3*time.Second {
			t.Errorf("the context ended after 3 s, the pause after %s with error %v", waited, err)
		}
	})
}
