package check

import (
	"bytes"
	"strconv"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/shared/ledger"
)

const alarmsEnd invariant = "10: The commands of the runbooks end every alarm and deliver what was parked. Each " +
	"change by gatewayctl has an audit record before it, and the records with their copies are complete. An export " +
	"of a merchant's days has each transaction once"

// alarmGrace is the time after the last round of the engineer from which no log line may raise an alarm. A transaction
// that was resolved at the round is checked once more, and an item that was undecodable waits for an hour.
const alarmGrace = 3 * time.Hour

// alarms are the values of log lines that raise an alarm of docs/operations.md, and the greatest values that do not.
var alarms = []struct {
	field []byte
	quiet int
}{
	{[]byte(`,"DeadLetters":`), 0},
	{[]byte(`,"EndpointsDisabled":`), 0},
	{[]byte(`,"StatusConflicts":`), 0},
	{[]byte(`,"LookupFailures":`), 0},
	{[]byte(`,"UserSMSFailures":`), 0},
	{[]byte(`,"OperatorAuthFailures":`), 0},
	{[]byte(`,"UnreadCallbacks":`), 0},
	{[]byte(`,"InternalErrors":`), 0},
	{[]byte(`,"UndecodableEntries":`), 0},
	{[]byte(`,"StaleUnknownOutcomes":`), 0},
	{[]byte(`,"ScheduleDelayMillis":`), 600_000},
	{[]byte(`,"StalledMillis":`), 1_800_000},
	{[]byte(`,"ParkedMillis":`), 24*3_600_000 - 1},
}

// runbooks checks that engineers end what waits for a person.
type runbooks struct{ *base }

// changed checks that an engineer's change has an audit record before it.
func (c *runbooks) changed(key string, writer *deployment.Instance) {
	if writer.Is(deployment.Engineer) && !writer.IsAudited {
		c.fail(alarmsEnd, "gatewayctl changed %s without an audit record", key)
	}
}

// logged checks that no line raises an alarm after the last acts of the engineer.
func (c *runbooks) logged(instance string, line []byte) {
	if c.LastRound.IsZero() || time.Now().Before(c.LastRound.Add(alarmGrace)) {
		return
	}
	for _, alarm := range alarms {
		_, after, found := bytes.Cut(line, alarm.field)
		if !found {
			continue
		}
		end := bytes.IndexAny(after, ",}")
		if value, err := strconv.Atoi(string(after[:max(end, 0)])); err != nil || value > alarm.quiet {
			c.fail(alarmsEnd, "%s still raises an alarm after the acts of the engineer: %s", instance, line)
		}
	}
}

// atEnd checks that the engineer's acts have ended every alarm and delivered what was parked.
func (c *runbooks) atEnd(e *ledger.Entry) {
	if c.LastRound.IsZero() {
		return // a world without an engineer
	}
	if c.Entries.IsListed(e) && c.Entries.ListedAt(e.ID).After(c.LastRound) {
		c.fail(alarmsEnd, "%s is %s/%s, and is still listed after the acts of the engineer", e.Key, e.State, e.Status)
	}
	for _, n := range e.Outbox.Waiting {
		if time.Since(history.Latest(n.At, c.LastRound)) > mirror.ListedBound {
			c.fail(alarmsEnd, "%s: the notification of %s is undelivered after the acts of the engineer: dead %q, "+
				"parked %v", e.Key, n.Status, n.DeadReason, n.Parked)
		}
	}
}

// AccountDropped reports that gatewayctl dropped the account of an entry that has a timer for calls to its operator.
func (c *runbooks) AccountDropped(e *ledger.Entry) {
	c.fail(alarmsEnd, "gatewayctl dropped account %s, and %s needs it", e.Route.Account, e.Key)
}

// AuditFailed implements engineers.Observer.
func (c *runbooks) AuditFailed(output []byte) {
	c.fail(alarmsEnd, "the audit records have faults: %s", output)
}

// Exported implements engineers.Observer.
func (c *runbooks) Exported(e *ledger.Entry, times int) {
	if times != 1 {
		c.fail(alarmsEnd, "an export has %s %d times", e.Key, times)
	}
}
