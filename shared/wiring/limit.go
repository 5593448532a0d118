package wiring

import (
	"crypto/rand"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/limit"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	"mobilegateway/shared/pause"
	"mobilegateway/shared/settings"
)

// RateLimiter returns the limiter of each merchant's requests per second.
func (d *Dependencies) RateLimiter() *limit.RateLimiter {
	return limit.NewRateLimiter(d.limitStore(), d.Now)
}

// DailyAmounts keeps merchants within their daily amounts.
func (d *Dependencies) DailyAmounts() *dailyamount.Counter {
	return &dailyamount.Counter{Store: d.limitStore(), Now: d.Now, Rand: rand.Reader, Sleep: pause.For}
}

// limitStore returns the store of limits; it shares its connections with the ledger.
func (d *Dependencies) limitStore() *limitdynamo.Store {
	return limitdynamo.New(d.aws.DynamoDB(), d.Env.Required(settings.LimitTable))
}
