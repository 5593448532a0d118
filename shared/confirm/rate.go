package confirm

import (
	"context"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
)

// callbackMargin is the part of an operator's patience with a callback that is left for our writes and the response.
const callbackMargin = time.Second

var (
	// ErrLookupRate is the cause of a lookup that was not made, because its account is at the rate of its platform's
	// row.
	ErrLookupRate = logsafe.New("the account makes as many lookups in a second as its platform takes")
	errPatience   = logsafe.New("the operator waits no longer for the response to its callback")
)

// TakeLookups takes up to most lookups out of the rate of an account, which all functions and commands share (decision
// "lookup-rate"), by one write. granted lookups may be made now. If it is 0, wait is the time until one may be made.
// A platform without a rate grants all without a write, and so does a table that does not respond: err is its error.
func (c *Confirmer) TakeLookups(
	ctx context.Context, account operator.Pin, most int,
) (granted int, wait time.Duration, err error) {
	row, _ := operator.FindCapabilities(account.Platform)
	if row.LookupsPerSecond == 0 || c.LookupRates == nil {
		return most, 0, nil
	}
	rate := limit.Rate{PerSecond: row.LookupsPerSecond, Burst: row.LookupBurst()}
	granted, wait, err = c.LookupRates.TakeUpTo(ctx, "lookups/"+account.Platform+"/"+account.Account, rate, most)
	if err != nil {
		return most, 0, err
	}
	return granted, wait, nil
}

// LookUpClaim looks a payment up inside the request of its callback, which has run for a while. The lookup ends
// callbackMargin before the operator's patience does. Without the time or the rate for one it fails, and the claim
// waits for the sweep (decision "callback-patience").
func (c *Confirmer) LookUpClaim(
	ctx context.Context, line *telemetry.LogLine, e *ledger.Entry, sinceStart time.Duration,
) LookupResult {
	if _, supported := c.Operators.StatusLookup(e); !supported {
		return LookupResult{}
	}
	if patience := operator.CapabilitiesOf(e).CallbackPatience; patience > 0 {
		remaining := patience - callbackMargin - sinceStart
		if remaining <= 0 {
			return LookupResult{Supported: true, Cause: errPatience}
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, remaining)
		defer cancel()
	}
	granted, _, err := c.TakeLookups(ctx, operator.PinOf(e), 1)
	if err != nil {
		line.Increment(telemetry.LimitStoreFailures)
		line.SetCause(err)
	}
	if granted == 0 {
		line.Increment(telemetry.RateLimitedLookups)
		return LookupResult{Supported: true, Cause: ErrLookupRate}
	}
	return c.LookUp(ctx, e)
}

// AwaitLookup takes one lookup out of the rate of an account, for a command. It waits for it with sleep, LookupTimeout
// at most; then the error is ErrLookupRate.
func (c *Confirmer) AwaitLookup(
	ctx context.Context, account operator.Pin, sleep func(context.Context, time.Duration) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, c.LookupTimeout)
	defer cancel()
	for {
		granted, wait, _ := c.TakeLookups(ctx, account, 1) // a table that does not respond limits nothing
		if granted > 0 {
			return nil
		}
		if sleep(ctx, wait) != nil {
			return ErrLookupRate
		}
	}
}
