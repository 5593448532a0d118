package simulate

import "time"

// The bounds of liveness that histories check (docs/reliability.md states them). Each counts from the time at which the
// last fault has ended, or from the act itself if that is later.
const (
	// finalBound: a transaction is final or listed for a person. A payment has a lookup at the end of its lifetime of
	// 24 hours; an entry without a lookup is listed daily.
	finalBound = 27 * time.Hour
	// claimBound: a payment with an open claim of success is final or listed for a person. It is flagged 48 hours after
	// the claim, by the next lookup of the hourly ones.
	claimBound = 51 * time.Hour
	// listedBound is the longest time between two listings of one entry.
	listedBound = 26 * time.Hour
	// deliveryBound: a notification is delivered, or is a dead letter. The longest wait of the schedule is 24 hours
	// with a fifth of jitter; two notifications of one entry follow each other.
	deliveryBound = 31 * time.Hour
	// deadLetterAge is the least age of a notification whose schedule of about 76 hours has ended: a fifth of jitter
	// less.
	deadLetterAge = 60 * time.Hour
	// unaffectedBound: a notification of a merchant whose server, data and operator are well, while others are not.
	unaffectedBound = 2 * time.Minute
)
