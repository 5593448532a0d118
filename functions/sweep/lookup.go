package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/settlement"
	"mobilegateway/shared/telemetry"
)

// settle looks a payment up at its operator and makes of the answer what the decisions say: a final status is applied;
// at the end of its lifetime an answered lookup that is not successful expires it; else it is asked again later
// (decisions "pay-poll" and "pay-claims"). The next lookup is stored first, which claims this one.
func (p *pass) settle(ctx context.Context, entry *ledger.Entry, line *telemetry.Event) (*ledger.Entry, error) {
	now := ledger.Moment(p.Now())
	if !entry.LookupDue(now) {
		return entry, nil
	}
	if !p.ask(entry.Operator) {
		return entry, nil // still due: the next sweep's
	}
	defer p.asked(entry.Operator)
	claimed := false
	entry, err := p.change(ctx, entry, func(e *ledger.Entry) bool {
		claimed = e.LookupDue(now)
		if claimed {
			e.PollAgain(p.nextPoll(e, now))
		}
		return claimed
	})
	if err != nil || !claimed {
		return entry, err
	}
	if entry.Kind != ledger.Payment {
		// It cannot be looked up: it waits for the merchant's retry or a person (decision "repeat-window").
		line.Count(telemetry.StaleUnknowns)
		return entry, nil
	}
	start := p.Now()
	answer := p.Settlement.Ask(ctx, entry)
	line.AddUpstream(p.Now().Sub(start))
	p.heard(entry.Operator, answer.Answered)
	if answer.Offered && !answer.Answered {
		line.Count(telemetry.LookupFailures)
		line.SetCause(answer.Cause)
	}
	if answer.Answered {
		entry, err = p.apply(ctx, entry, answer, line)
	}
	if err == nil && p.stuck(entry, answer, now) {
		line.Count(telemetry.StaleUnknowns)
	}
	return entry, err
}

// maxUnheard is how many lookups run side by side at an operator that has just not answered one: so one operator that is
// down holds up no other's payments, and no notifications.
const maxUnheard = workers / 4

// ask takes a place for a lookup at an operator; false where it is silent and its few places are taken.
func (p *pass) ask(operator string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.silent[operator] && p.asking[operator] >= maxUnheard {
		return false
	}
	p.asking[operator]++
	return true
}

// asked gives the place back.
func (p *pass) asked(operator string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.asking[operator]--
}

// heard notes whether an operator answered.
func (p *pass) heard(operator string, answered bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.silent[operator] = !answered
}

// apply stores what an answered lookup means.
func (p *pass) apply(ctx context.Context, entry *ledger.Entry, answer settlement.Answer, line *telemetry.Event) (*ledger.Entry, error) {
	conflicts := 0
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) { return p.change(ctx, entry, change) }
	settled, uncounted, err := p.Settlement.Keep(ctx, store, func(e *ledger.Entry) bool {
		now, kept := ledger.Moment(p.Now()), len(e.Conflicts)
		var resolved ledger.Resolved
		if answer.Final {
			resolved = e.Resolve(p.Settlement.Resolution(e, answer.Report, settlement.SourceStatus), now)
		} else {
			resolved = e.Expire(p.Lifetime, now)
		}
		conflicts = len(e.Conflicts) - kept
		return resolved != ledger.Same
	})
	if err == nil {
		line.Add(telemetry.Conflicts, conflicts)
	}
	if uncounted != nil {
		line.Count(telemetry.LimitFailures)
		line.SetCause(uncounted)
	}
	return settled, err
}

// stuck tells whether a payment that this lookup did not settle needs a person: one past its lifetime, which nobody
// answers for, which has a success claimed that getStatus does not confirm, or whose amount is another; and one that has
// been unknown for a while and cannot be looked up.
func (p *pass) stuck(e *ledger.Entry, answer settlement.Answer, now time.Time) bool {
	age := now.Sub(e.ReservedAt)
	switch {
	case e.Settled() || e.PollAt.IsZero() && e.Claim.Status == "":
		return false
	case age >= p.Lifetime:
		return true
	default:
		return !answer.Answered && e.State == ledger.Unknown && age >= ledger.StaleAfter
	}
}

// nextPoll is when an entry is asked about again if this time settles nothing: a payment by the schedule, but never past
// the end of its lifetime, at which an answer may expire it, and after that hourly; what cannot be looked up is listed
// again after the schedule's last wait.
func (p *pass) nextPoll(e *ledger.Entry, now time.Time) time.Time {
	last := len(p.PollSchedule) - 1
	end := e.ReservedAt.Add(p.Lifetime)
	switch {
	case e.Kind != ledger.Payment && now.Sub(e.ReservedAt) > p.Lifetime:
		return now.Add(p.Lifetime) // a person has been told often enough
	case e.Kind != ledger.Payment:
		return now.Add(p.PollSchedule[last])
	case !now.Before(end):
		return now.Add(p.RetrySilent)
	}
	next := now.Add(p.PollSchedule[min(e.DueTry+1, last)])
	if next.After(end) {
		return end
	}
	return next
}
