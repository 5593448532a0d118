package webhook

import (
	"encoding/binary"
	"io"
	"time"
)

// DefaultSchedule is the default of DELIVERY_SCHEDULE: ten attempts within about 76 hours (decision "notifications").
func DefaultSchedule() Schedule {
	return Schedule{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// Schedule has the wait before each attempt of a notification, counted from the previous attempt. Its length is the
// number of attempts.
type Schedule []time.Duration

// jitterDivisor bounds the jitter of a wait: ±1/5, so that attempts that failed together are not retried together.
const jitterDivisor = 5

// NextAttempt returns the time of the next attempt: now plus the wait of the schedule, or plus retryAfter if that is
// longer. It is false if no attempts are left: the notification is a dead letter. 8 bytes of random make the jitter; if
// they cannot be read, there is none.
func (s Schedule) NextAttempt(
	attemptsMade int, now time.Time, retryAfter time.Duration, random io.Reader,
) (time.Time, bool) {
	if attemptsMade < 0 || attemptsMade >= len(s) {
		return time.Time{}, false
	}
	return now.Add(max(withJitter(s[attemptsMade], random), retryAfter)), true //nolint:gosec // in range, checked above
}

// withJitter changes a wait by up to a fifth, uniformly distributed.
func withJitter(wait time.Duration, random io.Reader) time.Duration {
	maxShift := uint64(wait / jitterDivisor) //nolint:gosec // a schedule has no negative times
	var seed [8]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil || maxShift == 0 {
		return wait
	}
	shift := binary.BigEndian.Uint64(seed[:]) % (2*maxShift + 1)
	return wait - time.Duration(maxShift) + time.Duration(shift) //nolint:gosec // less than the wait
}
