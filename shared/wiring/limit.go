package wiring

import (
	"context"
	"crypto/rand"
	"time"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/limit"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	"mobilegateway/shared/settings"
)

// RateLimiter holds merchants to their requests a second.
func (d *Dependencies) RateLimiter() *limit.RateLimiter {
	return limit.NewRateLimiter(d.limitStore(), d.Now)
}

// DailyAmounts keeps merchants within their daily amounts.
func (d *Dependencies) DailyAmounts() *dailyamount.Counter {
	return &dailyamount.Counter{Store: d.limitStore(), Now: d.Now, Rand: rand.Reader, Sleep: sleep}
}

// limitStore is the table of limits, on the connections that the ledger has.
func (d *Dependencies) limitStore() *limitdynamo.Store {
	return limitdynamo.New(d.aws.DynamoDB(), d.Env.Required(settings.LimitTable))
}

// sleep waits, or gives the context's error.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
