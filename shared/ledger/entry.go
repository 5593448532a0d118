// Package ledger is the state machine of a transaction, and the interface of the store that keeps it.
//
// One transaction is one Entry, stored as one item. The rules are pure functions on Entry, so they are tested without a
// database: Decide, BeginReservation, TakeOver, ApplyOutcome, MarkLapsed, ApplyFinalStatus, AddClaim, ApplyReceipt,
// ResolveManually, and those of Outbox and UserSMS. Book applies them and writes each result under the version that it
// read. A Store inserts, replaces a version, and reads. It sends nothing to operators or merchants.
//
// An entry has two dimensions. State is where our call of the operator is; ApplyOutcome changes it. Status is what the
// merchant is notified of; ApplyFinalStatus and ApplyReceipt change it. docs/architecture.md draws both, and lists
// every write: its caller, its condition, and what it may change.
//
// Invariants: an entry is inserted before its operator is called. Version grows by one with each write. A final status
// never changes. After an attempt with an unknown outcome, only a success, a final refusal, a report of the operator
// that proves the outcome, or a manual resolution ends it. On some platforms "not found" is such a proof
// (EndNeverSent).
package ledger

import (
	"cmp"
	"slices"
	"time"

	"mobilegateway/shared/timeline"
)

// Entry is one transaction as it is stored. A field that does not apply to the kind stays empty and is not stored.
// Times are UTC with millisecond precision. Package dynamo has the stored names.
//
// Each part is a value that owns its rules; Entry has the rules that join two parts. Call and Progress are embedded,
// because everything reads State and Status.
type Entry struct {
	Key
	Merchant Merchant

	// Version counts writes from 1. Writer is the random token of the write that stored this version: by it, a write
	// whose response was lost recognises itself. Owner cannot serve for that. A callback writes without taking the
	// reservation over, and the reservation's own next write would take the callback's version for its own.
	Version   int64
	Writer    string
	CreatedAt time.Time // the first reservation
	UpdatedAt time.Time
	// ExpireAt is when the entry counts as absent, in whole seconds; zero for never. The table's time to live deletes
	// it some days later (decision "retention").
	ExpireAt time.Time

	Request  Request
	Route    Route
	Amount   Amount
	Response Response
	Call
	Progress
	Outbox  Outbox
	UserSMS UserSMS
	Manual  Manual
	// BindAt is when the sweep binds a sent SMS to its operator's id again (MessageIndex), because the send could not.
	// Zero if it is bound, or needs no binding. Until then its receipts wait in the index.
	BindAt time.Time
	// Timeline has the operator's last reports: lookups, callbacks, receipts, and codes of calls. Nothing is decided by
	// it (decision "order-timeline").
	Timeline timeline.Log
	// DueAt is when the sweep must process the entry; zero for never. Only Reschedule sets it, to the earliest of all
	// timers.
	DueAt time.Time

	// Extra has the attributes that this version of the program does not know. They are written back as read, so that
	// an older version beside a newer one loses nothing.
	Extra any
}

// Merchant is the merchant's immutable id, and its name at the time. DayShard is the partition of the merchant's day in
// the day index that the entry is in (decision "day-shards").
type Merchant struct {
	ID, Name string
	DayShard int
}

// Request is what the merchant requested.
type Request struct {
	// Fingerprint is the SHA-256 of the canonical request in base64. It is empty after a release that binds no body.
	Fingerprint string
	// Correlator is the clientCorrelator (charge, SMS) or ""; ReferenceCode is the charge's referenceCode.
	Correlator    string
	ReferenceCode string

	// Payments: the values that the notification and getStatus repeat.
	Channel       string // web, tpe, ussd
	Lang          string // fr or en
	TransactionID string // Transaction-id and intTransaction-id, a UUID
	State         string // "state", byte for byte
	Reference     string // "reference"
	MSISDN        string // user_msisdn as sent, "" if absent
	CountryAsSent string // country-code as sent

	// SMS.
	Address      string // the recipient's alias or acr, as in the request's address field
	Sender       string // senderAddress
	CallbackData string
}

// Route is where the operator is called, fixed by the reservation.
type Route struct {
	Country  string // alpha-2
	Operator string // name in the operator table, lower case
	Account  string // the operator account's id in the credentials
	// UpstreamKey is the transaction's key at the operator (decision "upstream-key").
	UpstreamKey string
	// CallbackKeys are the numbers of the keys that signed the callback addresses of this entry. A function that cannot
	// renew its key ring may sign with a key that no other function uses any more (decision "key-rings").
	CallbackKeys []int
}

// Response is the stored first response to the merchant, without otp_code. Status 0: none yet.
type Response struct {
	Status int
	Body   []byte
}

// ManualResolution is the manual resolution of an unknown outcome, kept with the entry (decision "unknown-by-hand").
type ManualResolution struct {
	Outcome string    `json:"oc,omitempty"`
	Who     string    `json:"who,omitempty"`
	Reason  string    `json:"re,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Manual is the manual resolution of an entry, if there was one. Reference is the operator's id in its statement, ""
// for none; no merchant gets it. It is an attribute of its own, as Outbox.Replays is.
type Manual struct {
	ManualResolution
	Reference string
}

// PastRetention is true from ExpireAt on: the entry counts as absent, even if the table has not deleted it yet.
func (e *Entry) PastRetention(now time.Time) bool {
	return !e.ExpireAt.IsZero() && !now.Before(e.ExpireAt)
}

// NotApplied is true if the entry certainly moved no money: it was refused or released, or it is a payment with a final
// status other than successful.
func (e *Entry) NotApplied() bool {
	return e.State == Refused || e.State == Released || e.Status.endsPayment() && e.Status != Successful
}

// PayerMSISDN is the payer's number for the SMS about a success: user_msisdn as sent, or else the number that the
// operator reported; "" for none (decision "user-sms").
func (e *Entry) PayerMSISDN() string { return cmp.Or(e.Request.MSISDN, e.Payer) }

// ContradictionsSince counts what contradicts the entry as it was before: new conflicts, and a success after a release,
// which was wrong to say that nothing was applied.
func (e *Entry) ContradictionsSince(before Entry) int {
	count := len(e.Conflicts) - len(before.Conflicts)
	if before.State == Released && e.Status == Successful {
		count++
	}
	return count
}

// BeginReservation makes a prepared entry the first reservation of its key: Version 1, owned, and Reserved until
// LeaseUntil, which the caller has set.
func (e *Entry) BeginReservation(owner string, now time.Time) {
	e.Version, e.Owner, e.State = 1, owner, Reserved
	e.CreatedAt, e.SentAt, e.ReservedAt, e.UpdatedAt = now, now, now, now
	e.Status = ""
	if e.Kind == Payment {
		e.Status = Pending
	}
	e.Reschedule()
}

// Clone copies the entry and its lists. Extra is shared, because it is never changed. A nil entry gives nil.
func (e *Entry) Clone() *Entry {
	if e == nil {
		return nil
	}
	c := *e
	c.Response.Body = slices.Clone(e.Response.Body)
	c.Call.Attempts = slices.Clone(e.Call.Attempts)
	c.Conflicts = slices.Clone(e.Conflicts)
	c.Outbox.Waiting = slices.Clone(e.Outbox.Waiting)
	c.Outbox.Delivered = slices.Clone(e.Outbox.Delivered)
	c.Outbox.FailedAttempts = slices.Clone(e.Outbox.FailedAttempts)
	c.Outbox.Replays = slices.Clone(e.Outbox.Replays)
	return &c
}

// Timestamp converts a time to the stored form: UTC, in whole milliseconds.
func Timestamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// truncateTimes cuts every time to the stored precision, so that the entry in memory equals the one read back.
func truncateTimes(e *Entry) {
	times := []*time.Time{
		&e.LeaseUntil, &e.CreatedAt, &e.SentAt, &e.ReservedAt, &e.UpdatedAt, &e.FinalAt, &e.ExpireAt, &e.UserSMS.At,
		&e.Poll.At, &e.BindAt, &e.DueAt, &e.Claim.At, &e.Claim.CheckAt, &e.Manual.At,
	}
	for i := range e.Call.Attempts {
		times = append(times, &e.Call.Attempts[i].At)
	}
	for i := range e.Conflicts {
		times = append(times, &e.Conflicts[i].At)
	}
	for i := range e.Outbox.FailedAttempts {
		times = append(times, &e.Outbox.FailedAttempts[i].At)
	}
	for i := range e.Outbox.Replays {
		times = append(times, &e.Outbox.Replays[i].At, &e.Outbox.Replays[i].DeliveredAt)
	}
	for _, list := range [][]Notification{e.Outbox.Waiting, e.Outbox.Delivered} {
		for i := range list {
			times = append(times, &list[i].At, &list[i].NextAttemptAt, &list[i].DeliveredAt)
		}
	}
	for _, t := range times {
		*t = Timestamp(*t)
	}
	e.ExpireAt = e.ExpireAt.Truncate(time.Second)
}

// Reschedule sets DueAt to the earliest of the entry's timers, or clears it. Nothing else sets DueAt. It is called
// before each write, so the transitions of Book.Change need not call it.
func (e *Entry) Reschedule() {
	var due time.Time
	if e.State == Reserved {
		due = sooner(due, e.LeaseUntil.Add(LapseMargin))
	}
	if e.pollable(e.Kind, e.State) {
		due = sooner(due, e.Poll.At)
	}
	if e.claimOpen() {
		due = sooner(due, e.Claim.CheckAt)
	}
	if head := e.Outbox.Head(); head != nil {
		due = sooner(due, head.NextAttemptAt)
	}
	if e.UserSMS.State == UserSMSDue {
		due = sooner(due, e.UserSMS.At)
	}
	e.DueAt = sooner(due, e.BindAt)
	if e.PastRetention(e.DueAt) {
		e.DueAt = time.Time{} // by then it counts as absent
	}
}

// sooner is the earlier of two times. Zero means never.
func sooner(due, at time.Time) time.Time {
	if at.IsZero() || !due.IsZero() && !at.Before(due) {
		return due
	}
	return at
}
