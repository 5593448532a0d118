// Package ledger keeps every transaction: what was reserved, what came of it, and what the merchant is still to be told.
//
// One transaction is one Entry, stored as one item. All rules of the life of an entry are pure functions on Entry in
// this package (Decide, Begin, Retake, Settle, Resolve, Judge ...); a Store only inserts, replaces under a version, and reads. So the
// state machine is tested without a database, and every write after the reservation is fenced by construction.
//
// Invariants: an entry is inserted before its operator is called; Version grows by one with every write; a final
// status never changes; once an attempt's outcome is unknown, only a success, a final refusal or a person's word ends it.
package ledger

import "time"

// Kind is the operation a transaction belongs to.
type Kind string

// The kinds of transactions, and the small item that makes a charge's referenceCode unique.
const (
	Charge    Kind = "charge"
	Payment   Kind = "pay"
	SMS       Kind = "sms"
	Reference Kind = "reference"
)

// State is where the operator call of an entry stands.
type State string

// The states. Reserved already means "may have been sent".
const (
	Reserved State = "reserved" // an owner works on it until LeaseUntil; after that it counts as unknown
	Done     State = "done"     // the operator applied it, and for a payment: accepted it
	Refused  State = "refused"  // the operator refused it for good
	Unknown  State = "unknown"  // it may have been applied
	Released State = "released" // it was certainly not applied; the same request may come again
)

// Status is what the merchant is told: of a payment, or of an SMS's delivery. Empty for a charge.
type Status string

// Payment statuses (decision "pay-statuses"): pending, then exactly one of the others.
const (
	Pending    Status = "pending"
	Successful Status = "successful"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
	Expired    Status = "expired"
)

// UserSMSState is where the purchaser's SMS of a successful payment stands (decision "user-sms").
type UserSMSState string

// The states of the purchaser's SMS. Empty: none is to be sent.
const (
	UserSMSDue     UserSMSState = "due"
	UserSMSSent    UserSMSState = "sent"
	UserSMSFailed  UserSMSState = "failed"
	UserSMSUnknown UserSMSState = "unknown"
)

// SMS delivery statuses (OMA SMS; decision "sms-receipts").
const (
	MessageWaiting      Status = "MessageWaiting"
	DeliveredToNetwork  Status = "DeliveredToNetwork"
	DeliveredToTerminal Status = "DeliveredToTerminal"
	DeliveryUncertain   Status = "DeliveryUncertain"
	DeliveryImpossible  Status = "DeliveryImpossible"
	NotificationNotSupp Status = "DeliveryNotificationNotSupported"
)

// Key names one entry. ID is the public identifier: the charge's transaction id, the order_id, the SMS request id.
type Key struct {
	Kind Kind
	ID   string
}

// Entry is one transaction as it is stored. A field that does not apply to the kind stays empty and is not stored.
// Times are UTC with millisecond precision.
type Entry struct {
	Key

	// Who: the merchant's immutable id and its name at the time.
	MerchantID string
	Merchant   string

	// Fencing. Version counts writes from 1. Owner is the random token of the attempt that holds or last held the
	// reservation: the fence of Settle. Writer is the random token of the one write that stored this version, by which
	// a write whose answer was lost recognises itself. They differ because a callback writes without taking the
	// reservation over: were its write known by Owner, the reservation's own write would take it for itself.
	Version int64
	Owner   string
	Writer  string

	State      State
	Status     Status
	LeaseUntil time.Time // while Reserved
	// EverUnknown is set once an attempt's outcome was unknown, and cleared only by what proves that nothing was ever sent.
	EverUnknown bool
	// ReleasedBefore is set where an earlier attempt of the same request was released: it may have been sent, so the key
	// stays bound to its body (decision "released").
	ReleasedBefore bool
	CreatedAt      time.Time // the first reservation
	// SentAt is the first moment at which what may have been applied may have been sent: the repeat window counts from it
	// (decision "repeat-window"). A release moves it: what was sent before was certainly not applied.
	SentAt time.Time
	// ReservedAt is the last reservation: the lifetime of a payment counts from it, for it was accepted after that.
	ReservedAt time.Time
	UpdatedAt  time.Time
	FinalAt    time.Time // when Status became final
	// ExpireAt is when the entry counts as absent, in whole seconds; zero for never. The table's time to live deletes
	// it some days later (decision "retention").
	ExpireAt time.Time

	// Fingerprint is the SHA-256 of the canonical request in hex; "" after a release that proves that nothing was sent
	// and binds no body (a taken referenceCode).
	Fingerprint string
	// Correlator is the clientCorrelator (charge, SMS) or ""; ReferenceCode the charge's referenceCode.
	Correlator    string
	ReferenceCode string
	// UpstreamKey is what the operator knows the transaction by (decision "upstream-key").
	UpstreamKey string

	// Routing, pinned at the reservation.
	Country  string // alpha-2
	Operator string // name in the operator table, lower case
	Account  string // the operator account's id in the credentials
	Channel  string // payments: web, tpe, ussd
	Lang     string // payments: fr or en

	// Money: minor units with the currency's exponent, and the amount as it was sent.
	AmountMinor  int64
	Exponent     int
	Currency     string
	AmountAsSent string
	// CountsDailyAmount is true where the amount counts against its merchant's limit of the day of SentAt. Like SentAt it is pinned at
	// the first reservation, and anew after a release (decision "merchant-limits").
	CountsDailyAmount bool

	// Answer is the stored first answer, without otp_code. ResponseStatus 0 means that there is none yet.
	ResponseStatus int
	ResponseBody   []byte
	// OperatorReference is the operator's own id: serverReferenceCode, Transaction-id or the last segment of resourceURL.
	OperatorReference string

	// Payments: what the notification and getStatus repeat.
	TransactionID     string // Transaction-id and intTransaction-id, a UUID
	MerchantState     string // "state", byte for byte
	MerchantReference string // "reference"
	MSISDN            string // user_msisdn as sent, "" if absent
	CountryAsSent     string // country-code as sent
	MSISDNReported    string // the purchaser's number as the callback or getStatus gave it
	NotifToken        string
	NotifyURL         string // payments: notif_url; SMS: receiptRequest.notifyURL; "" for none

	// SMS.
	Address      string // the alias or acr the message goes to, as in the request's address field
	Sender       string // senderAddress
	CallbackData string

	// Claim is an operator's claim that is not confirmed yet; Conflicts what contradicted a final status or our amount.
	Claim     Claim
	Conflicts []Conflict

	// Outbox: notifications still to be delivered, oldest first. Only the first is ever being delivered. Told are those
	// that were delivered, oldest first, at most MaxDelivered: what Replay sends again.
	Outbox    []Notification
	Delivered []Notification
	// FailedAttempts are the failed attempts at notifications, oldest first, at most MaxAttempts.
	FailedAttempts []FailedAttempt
	// Replays are the notifications that were sent again by hand, oldest first, at most MaxReplays: where each stood before.
	// An attribute of its own, because an older version beside this one keeps that, and would lose a new member of Told.
	Replays []ReplayRecord
	// UserSMS is where the purchaser's SMS stands, UserSMSAt when it is tried (again) while due, and UserSMSAttempts counts
	// the tries.
	UserSMS         UserSMSState
	UserSMSAt       time.Time
	UserSMSAttempts int
	// PollAt is the next status lookup of a payment that is pending or unknown, or when another entry that is unknown is
	// listed (again) for a person. PollAttempts counts the times it was.
	PollAt       time.Time
	PollAttempts int
	// Manual is what a person said of the outcome, where it was one who settled the entry.
	Manual ManualResolution
	// DueAt is when the sweep has to look at the entry again; zero for never. It is the earliest of all timers, computed by
	// Reschedule alone.
	DueAt time.Time

	// Extra holds attributes that this version of the program does not know: kept as read and written back, so that
	// an older version beside a newer one loses nothing.
	Extra any
}

// Claim is a status that an operator's callback claimed and that waits for confirmation by getStatus.
type Claim struct {
	Status            Status    `json:"status,omitempty"`
	OperatorReference string    `json:"operator_reference,omitempty"`
	MSISDN            string    `json:"msisdn,omitempty"`
	At                time.Time `json:"at,omitzero"`
	CheckAt           time.Time `json:"due,omitzero"` // when getStatus is asked about it (again)
}

// Conflict is a claim that was kept and never applied.
type Conflict struct {
	Status Status    `json:"status"`
	Reason string    `json:"reason"` // "final", "amount", "currency", "unconfirmed"
	Source string    `json:"source"` // "callback", "getStatus", "answer" (the operator's answer to our own call)
	At     time.Time `json:"at"`
}

// Notification is one message to the merchant. ID is the webhook-id, the same on every attempt.
type Notification struct {
	ID            string    `json:"id"`
	Status        Status    `json:"status"`
	At            time.Time `json:"at"`                 // when the status came
	Attempts      int       `json:"attempt"`            // attempts made so far; 0: the fast path's
	RelayNotified bool      `json:"shown,omitempty"`    // an earlier version has woken the relay for it
	NextAttemptAt time.Time `json:"next,omitzero"`      // not before
	DeadReason    string    `json:"dead,omitempty"`     // the reason, once given up
	Parked        bool      `json:"parked,omitempty"`   // the endpoint is disabled; its clock stands still
	LastStatus    int       `json:"last_code,omitzero"` // HTTP status of the last attempt, 0 for none
	LastReason    string    `json:"last_why,omitempty"` // why the last attempt failed
	DeliveredAt   time.Time `json:"told_at,omitzero"`   // when it was delivered
}

// FailedAttempt is one attempt at a notification that failed.
type FailedAttempt struct {
	Status     Status    `json:"status"` // the notification's
	Number     int       `json:"number"` // counts from 1, and anew when the notification is replayed
	At         time.Time `json:"at"`
	HTTPStatus int       `json:"code,omitzero"` // HTTP status, 0 for none
	Reason     string    `json:"why"`
}

// ReplayRecord is one notification that was sent again by hand, and where it stood before: what the replay clears.
type ReplayRecord struct {
	Status      Status    `json:"status"`           // the notification's
	At          time.Time `json:"at"`               // when it was replayed
	Attempts    int       `json:"attempt"`          // attempts made before
	DeliveredAt time.Time `json:"told_at,omitzero"` // when it was delivered before; zero where it was not
	DeadReason  string    `json:"dead,omitempty"`   // the reason, where it had been given up
}
