package simulate

import (
	"bytes"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/shared/dynamoitem"
)

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
}

// checkAlarms checks that no line raises an alarm after the last acts of the engineer (invariant 10).
func (w *World) checkAlarms(i *instance, line []byte) {
	if w.LastRound.IsZero() || time.Now().Before(w.LastRound.Add(alarmGrace)) {
		return
	}
	for _, alarm := range alarms {
		_, after, found := bytes.Cut(line, alarm.field)
		if !found {
			continue
		}
		end := bytes.IndexAny(after, ",}")
		if value, err := strconv.Atoi(string(after[:max(end, 0)])); err != nil || value > alarm.quiet {
			w.Fail("invariant 10: %s still raises an alarm after the acts of the engineer: %s", i.Name, line)
		}
	}
}

// restoreItem does what docs/operations.md says about an item that cannot be decoded: it is as it was before.
func (w *World) restoreItem() {
	if !w.undecodable {
		return
	}
	_, err := w.database.DeleteItem(&dynamodb.DeleteItemInput{
		TableName: aws.String(ledgerTable), Key: dynamoitem.Key(undecodableKey),
	})
	if err != nil {
		w.Fail("restore an item: %s", err)
	}
}
