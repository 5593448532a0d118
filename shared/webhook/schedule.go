package webhook

import (
	"encoding/binary"
	"io"
	"time"
)

// DefaultSchedule is the time before each attempt, counted from the one before: about 76 hours in all (decision
// "notifications").
func DefaultSchedule() Schedule {
	return Schedule{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// Schedule is the time before each attempt of a notification, counted from the attempt before it; its length is the
// number of attempts (DELIVERY_SCHEDULE).
type Schedule []time.Duration

// jitterDivisor is how far a wait is moved at most: a fifth of it, either way, so that what failed together does not come
// back together.
const jitterDivisor = 5

// NextAttempt says when to try again after made attempts, the last of which ended at now and asked for retryAfter (0 if it did
// not). It is false when all attempts are made: the notification is dead. random gives 8 bytes; where it gives none
// there is no jitter.
func (s Schedule) NextAttempt(attemptsMade int, now time.Time, retryAfter time.Duration, random io.Reader) (time.Time, bool) {
	if attemptsMade < 0 || attemptsMade >= len(s) {
		return time.Time{}, false
	}
	return now.Add(max(withJitter(s[attemptsMade], random), retryAfter)), true //nolint:gosec // in range: see above
}

// withJitter moves a wait by up to a fifth, evenly.
func withJitter(wait time.Duration, random io.Reader) time.Duration {
	maxShift := uint64(wait / jitterDivisor) //nolint:gosec // a schedule has no negative times
	var seed [8]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil || maxShift == 0 {
		return wait
	}
	shift := binary.BigEndian.Uint64(seed[:]) % (2*maxShift + 1)
	return wait - time.Duration(maxShift) + time.Duration(shift) //nolint:gosec // less than the wait
}
