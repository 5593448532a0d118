package assembly

import (
	"context"
	"crypto/rand"
	"time"

	"mobilegateway/shared/limit"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	"mobilegateway/shared/settings"
)

// Rate holds merchants to their requests a second.
func (p *Parts) Rate() *limit.Rate { return limit.NewRate(p.limits(), p.Now) }

// Amounts holds merchants to their money a day.
func (p *Parts) Amounts() *limit.Amounts {
	return &limit.Amounts{Store: p.limits(), Now: p.Now, Rand: rand.Reader, Pause: pause}
}

// limits is the table of limits, on the connections that the ledger has.
func (p *Parts) limits() *limitdynamo.Store {
	return limitdynamo.New(p.aws.DynamoDB(), p.Env.Required(settings.LimitTable))
}

// pause waits, or gives the context's error.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
