package sweep

import (
	"testing"
	"time"

	"mobilegateway/shared/confirm"
	"mobilegateway/shared/ledger"
)

// scheduled is a pass with a lifetime of a day, and its time.
func scheduled() (*pass, time.Time) {
	return &pass{Sweep: &Sweep{
		PollSchedule:    []time.Duration{time.Minute, 2 * time.Minute, time.Hour},
		PaymentLifetime: 24 * time.Hour, UnresponsiveRetry: 30 * time.Minute,
	}}, time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
}

// decision "pay-poll": the next lookup of a payment, and the next listing of an entry without a lookup.
func TestNextPollAt(t *testing.T) {
	p, now := scheduled()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		kind     ledger.Kind
		age      time.Duration
		attempts int
		want     time.Duration
		claimed  time.Duration // the age of a claim of success, 0 for none
	}{
		"after the first lookup":               {ledger.Payment, time.Minute, 0, 2 * time.Minute, 0},
		"after the second":                     {ledger.Payment, 3 * time.Minute, 1, time.Hour, 0},
		"the last wait repeats":                {ledger.Payment, time.Hour, 7, time.Hour, 0},
		"the last one ends with the lifetime":  {ledger.Payment, day - time.Hour, 7, time.Hour, 0},
		"no later than the end":                {ledger.Payment, day - time.Hour + 1, 7, time.Hour - 1, 0},
		"just before the end":                  {ledger.Payment, day - 1, 7, 1, 0},
		"at the end":                           {ledger.Payment, day, 7, 30 * time.Minute, 0},
		"after the end":                        {ledger.Payment, 3 * day, 7, 30 * time.Minute, 0},
		"a charge, hourly":                     {ledger.Charge, time.Minute, 0, time.Hour, 0},
		"a charge, hourly until it is a day":   {ledger.Charge, day, 0, time.Hour, 0},
		"a charge, daily after that":           {ledger.Charge, day + 1, 0, day, 0},
		"an SMS, hourly":                       {ledger.SMS, 23 * time.Hour, 40, time.Hour, 0},
		"an SMS that is older than its listed": {ledger.SMS, 9 * day, 40, day, 0},
		"claimed, within 48 hours":             {ledger.Payment, 2*day - 1, 7, 30 * time.Minute, 2*day - 1},
		"claimed, from 48 hours on":            {ledger.Payment, 2 * day, 7, day, 2 * day},
		"claimed late, hourly for 48 hours":    {ledger.Payment, 3 * day, 7, 30 * time.Minute, 2*day - 1},
		"claimed, then sent again":             {ledger.Payment, time.Minute, 0, 2 * time.Minute, 9 * day},
		"claimed, sent again, past the end":    {ledger.Payment, day, 7, 30 * time.Minute, 9 * day},
		"claimed a year ago":                   {ledger.Payment, 365 * day, 7, day, 365 * day},
	} {
		e := &ledger.Entry{
			Key: ledger.Key{Kind: c.kind}, Call: ledger.Call{ReservedAt: now.Add(-c.age), State: ledger.Unknown},
			Progress: ledger.Progress{Poll: ledger.Poll{Attempts: c.attempts}},
		}
		if c.claimed > 0 {
			e.Claim = ledger.Claim{Status: ledger.Successful, At: now.Add(-c.claimed)}
		}
		if got := p.nextPollAt(e, now).Sub(now); got != c.want {
			t.Errorf("%s: after %s, want %s", name, got, c.want)
		}
	}
}

// A person must look at a payment at the end of its lifetime. An unknown one without a response comes after 15 minutes.
func TestNeedsManualResolution(t *testing.T) {
	p, now := scheduled()
	const day, stale = 24 * time.Hour, 15 * time.Minute
	silent, responded := confirm.LookupResult{}, confirm.LookupResult{Responded: true}
	for name, c := range map[string]struct {
		state  ledger.State
		status ledger.Status
		claim  ledger.Status
		polled bool
		age    time.Duration
		lookup confirm.LookupResult
		want   bool
	}{
		"pending, before the end":  {ledger.Done, ledger.Pending, "", true, day - 1, silent, false},
		"pending, at the end":      {ledger.Done, ledger.Pending, "", true, day, responded, true},
		"final":                    {ledger.Done, ledger.Failed, "", true, day, silent, false},
		"released":                 {ledger.Released, ledger.Pending, "", false, day, silent, false},
		"released, claimed":        {ledger.Released, ledger.Pending, ledger.Successful, false, day, silent, true},
		"claimed, before 48 hours": {ledger.Done, ledger.Pending, ledger.Successful, true, 2*day - 1, responded, false},
		"claimed, after 48 hours":  {ledger.Done, ledger.Pending, ledger.Successful, true, 2 * day, responded, true},
		"released, before 48 hours": {ledger.Released, ledger.Pending, ledger.Successful, false, 2*day - 1, responded,
			false},
		"released, after 48 hours": {ledger.Released, ledger.Pending, ledger.Successful, false, 2 * day, responded,
			true},
		"claimed, no response":         {ledger.Done, ledger.Pending, ledger.Successful, true, day, silent, true},
		"a failure claimed":            {ledger.Done, ledger.Pending, ledger.Failed, true, day, responded, true},
		"unknown, before 15 minutes":   {ledger.Unknown, ledger.Pending, "", true, stale - 1, silent, false},
		"unknown, after 15 minutes":    {ledger.Unknown, ledger.Pending, "", true, stale, silent, true},
		"unknown, with a response":     {ledger.Unknown, ledger.Pending, "", true, stale, responded, false},
		"accepted, without a response": {ledger.Done, ledger.Pending, "", true, stale, silent, false},
	} {
		e := &ledger.Entry{
			Key: ledger.Key{Kind: ledger.Payment}, Call: ledger.Call{State: c.state, ReservedAt: now.Add(-c.age)},
			Progress: ledger.Progress{Status: c.status, Claim: ledger.Claim{Status: c.claim, At: now.Add(-c.age)}},
		}
		if c.polled {
			e.Poll.At = now.Add(time.Hour)
		}
		if got := p.needsManualResolution(e, c.lookup, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
