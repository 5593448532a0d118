package sweep

import (
	"context"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
)

// job is one kind of work on an entry. All jobs follow one rule: lease by a write that moves the job's timer, do,
// record. A job that cannot be done now is postponed by one write, so that no entry stays at the head of the queue.
type job struct {
	// due reports whether the job is due.
	due func(e *ledger.Entry, now time.Time) bool
	// prepare reads what the job needs. After an error nothing was leased.
	prepare func(ctx context.Context, e *ledger.Entry) (preparedJob, error)
	// since is when the job could first have been done. postpone moves a due job to next, and returns whether it was
	// due. A job that needs only its own writes is never postponed and has neither.
	since    func(e *ledger.Entry) time.Time
	postpone func(e *ledger.Entry, now, next time.Time) bool
	// hasOwnAlarm is true if a postponed job does not count as stalled work.
	hasOwnAlarm bool
}

// preparedJob is a job that can be done once its entry has the required slot. Without a slot nothing was leased.
type preparedJob struct {
	requires requirement
	do       doFunc
}

// doFunc leases and does a job, records its outcome, and returns the entry as stored.
type doFunc func(ctx context.Context, e *ledger.Entry, line *telemetry.LogLine) (*ledger.Entry, error)

// needsNothing prepares a job that needs only its own writes.
func needsNothing(do doFunc) func(context.Context, *ledger.Entry) (preparedJob, error) {
	return func(context.Context, *ledger.Entry) (preparedJob, error) { return preparedJob{do: do}, nil }
}
