// Package ledger is the state machine of a transaction, and the interface of the store that keeps it.
//
// One transaction is one Entry, stored as one item. The rules are pure functions on Entry, so they are tested without a
// database: Decide, BeginReservation, TakeOver, ApplyOutcome, MarkLapsed, ApplyFinalStatus, AddClaim, ApplyReceipt,
// ResolveManually, and those of the outbox. Book applies them and writes each result under the version that it read. A
// Store inserts, replaces a version, and reads. It sends nothing to operators or merchants.
//
// An entry has two dimensions. State is where our call of the operator is; ApplyOutcome changes it. Status is what the
// merchant is notified of; ApplyFinalStatus and ApplyReceipt change it. docs/architecture.md draws both, and lists
// every write: its caller, its condition, and what it may change.
//
// Invariants: an entry is inserted before its operator is called. Version grows by one with each write. A final status
// never changes. After an attempt with an unknown outcome, only a success, a final refusal, a confirmed report of the
// operator or a manual resolution ends it.
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
	MessageID Kind = "message" // finds an SMS by its operator's id
)

// State is where our call of the operator is.
type State string

// The states. Reserved already means "may have been sent".
const (
	Reserved State = "reserved" // an attempt owns it until LeaseUntil; after that it counts as unknown
	Done     State = "done"     // the operator applied it, or accepted it (payment)
	Refused  State = "refused"  // the operator refused it permanently
	Unknown  State = "unknown"  // it may have been applied
	Released State = "released" // it was certainly not applied; the same request may come again
)

// Status is what the merchant is notified of: a payment's status, or an SMS's delivery status. A charge has none.
type Status string

// Payment statuses (decision "pay-statuses"): pending, then exactly one of the others.
const (
	Pending    Status = "pending"
	Successful Status = "successful"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
	Expired    Status = "expired"
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

// UserSMSState is the state of the SMS to the payer of a successful payment (decision "user-sms").
type UserSMSState string

// The states of the payer's SMS. Empty: none will be sent.
const (
	UserSMSDue     UserSMSState = "due"
	UserSMSSent    UserSMSState = "sent"
	UserSMSFailed  UserSMSState = "failed"
	UserSMSUnknown UserSMSState = "unknown"
)

// AddressSource is where the address of an entry's notifications comes from (decision "notification-address").
type AddressSource string

// The sources. The values are stored, and short for the item's size.
const (
	AddressOfRequest AddressSource = ""  // NotifyURL, which the request named; also of entries without a source
	AddressOfProfile AddressSource = "p" // the profile's present notif_url; NotifyURL is that of the reservation
	AddressFormer    AddressSource = "f" // NotifyURL, although it was the profile's: a person chose it
)

// Key names one entry. ID is the public identifier: the charge's transaction id, the order_id, the SMS request id.
type Key struct {
	Kind Kind
	ID   string
}

// Entry is one transaction as it is stored. A field that does not apply to the kind stays empty and is not stored.
// Times are UTC with millisecond precision. Package dynamo has the stored names.
type Entry struct {
	Key

	// The merchant's immutable id, and its name at the time.
	MerchantID string
	Merchant   string

	// Version counts writes from 1. Owner is the fencing token of the attempt that owns the reservation, or owned it
	// last. Writer is the random token of the write that stored this version: by it, a write whose response was lost
	// recognises itself. Owner cannot serve for that. A callback writes without taking the reservation over, and the
	// reservation's own next write would take the callback's version for its own.
	Version int64
	Owner   string
	Writer  string

	State      State
	Status     Status
	LeaseUntil time.Time // while Reserved
	// EverUnknown is true after an attempt with an unknown outcome, until a proof that nothing was ever sent.
	EverUnknown bool
	// NothingSent qualifies EverUnknown: the operator responded to every attempt that it knew the key, or had not
	// applied it. So no send of ours can have reached it.
	NothingSent bool
	// KeyTaken is true once the operator has reported a duplicate before a send of ours can have reached it. The key is
	// another transaction's, so no later duplicate proves a send of ours (decision "sms-duplicate").
	KeyTaken bool
	// ReleasedBefore is true if an earlier attempt of the same request was released. It may have been sent, so the key
	// stays bound to its body (decision "released").
	ReleasedBefore bool
	CreatedAt      time.Time // the first reservation
	// SentAt is the earliest time at which an attempt that may have been applied can have been sent. The resend window
	// starts at it (decision "repeat-window"). A release moves it, because earlier attempts were certainly not applied.
	SentAt time.Time
	// ReservedAt is the last reservation. A payment's lifetime starts at it, because the operator accepted it after
	// that.
	ReservedAt time.Time
	UpdatedAt  time.Time
	FinalAt    time.Time // when Status became final
	// ExpireAt is when the entry counts as absent, in whole seconds; zero for never. The table's time to live deletes
	// it some days later (decision "retention").
	ExpireAt time.Time

	// Fingerprint is the SHA-256 of the canonical request in base64. It is empty after a release that binds no body.
	Fingerprint string
	// Correlator is the clientCorrelator (charge, SMS) or ""; ReferenceCode is the charge's referenceCode.
	Correlator    string
	ReferenceCode string
	// UpstreamKey is the transaction's key at the operator (decision "upstream-key").
	UpstreamKey string

	// Routing, fixed by the reservation.
	Country  string // alpha-2
	Operator string // name in the operator table, lower case
	Account  string // the operator account's id in the credentials
	Channel  string // payments: web, tpe, ussd
	Lang     string // payments: fr or en
	// CallbackKeys are the numbers of the keys that signed the callback addresses of this entry. A function that cannot
	// renew its key ring may sign with a key that no other function uses any more (decision "key-rings").
	CallbackKeys []int

	// The amount in minor units with the currency's exponent, and as it was sent.
	AmountMinor  int64
	Exponent     int
	Currency     string
	AmountAsSent string
	// CountsDailyAmount is true if the amount counts against its merchant's limit of SentAt's day. Like SentAt, it is
	// fixed by the first reservation, and again after a release (decision "merchant-limits").
	CountsDailyAmount bool

	// ResponseStatus and ResponseBody are the stored first response, without otp_code. ResponseStatus 0: none yet.
	ResponseStatus int
	ResponseBody   []byte
	// CallAttempts are the attempts to call the operator, oldest first, at most MaxCallAttempts. It is empty after a
	// first attempt that succeeded. Nothing is decided by it.
	CallAttempts []CallAttempt
	// OperatorReference is the operator's own id: serverReferenceCode, Transaction-id or the last segment of
	// resourceURL.
	OperatorReference string

	// Payments: the values that the notification and getStatus repeat.
	TransactionID     string // Transaction-id and intTransaction-id, a UUID
	MerchantState     string // "state", byte for byte
	MerchantReference string // "reference"
	MSISDN            string // user_msisdn as sent, "" if absent
	CountryAsSent     string // country-code as sent
	MSISDNReported    string // the payer's number as the callback or getStatus reported it
	// FailureReason is why a payment is Failed, as its operator reported it; "" for no reason that we know. WhyNotPaid
	// is for readers.
	FailureReason FailureReason
	NotifToken    string
	// Material is what the operator's driver needs for every later call: the operator's own key of the payment, or its
	// page's token. "" for none.
	Material   string
	NotifyURL  string // payments: notif_url; SMS: notifyURL; charges: CallOutcome.NotifyURL; "" for none
	NotifyFrom AddressSource

	// SMS.
	Address      string // the recipient's alias or acr, as in the request's address field
	Sender       string // senderAddress
	CallbackData string

	// Claim is a status that an operator's callback claimed and no lookup has confirmed yet. Conflicts are the reports
	// that contradicted a final status or our amount, oldest first, at most MaxConflicts.
	Claim     Claim
	Conflicts []Conflict

	// Outbox has the undelivered notifications, oldest first; only the first that is not a dead letter is attempted.
	// Delivered has the delivered ones, oldest first, at most MaxDelivered: those that ReplayNotification can send
	// again.
	Outbox    []Notification
	Delivered []Notification
	// OpenClaims counts the claims of the head's next attempt that have no recorded outcome. It is a field of its own,
	// as Replays is.
	OpenClaims int
	// FailedAttempts are the failed delivery attempts, oldest first, at most MaxAttempts.
	FailedAttempts []FailedAttempt
	// Replays are the manual replays of notifications, oldest first, at most MaxReplays. They are a field of their own:
	// an older version keeps an unknown attribute, but would lose a new member of Delivered.
	Replays []ReplayRecord
	// UserSMS is the state of the payer's SMS. While due, UserSMSAt is its next attempt. UserSMSAttempts counts the
	// attempts with a recorded outcome, UserSMSClaims the claims since without one. UserSMSMaybeSent is true after an
	// attempt that may have reached the operator.
	UserSMS          UserSMSState
	UserSMSAt        time.Time
	UserSMSAttempts  int
	UserSMSClaims    int
	UserSMSMaybeSent bool
	// PollAt is the next lookup of a payment that is pending or unknown. For another unknown entry it is the next time
	// that the sweep lists it for a person. PollAttempts counts both.
	PollAt       time.Time
	PollAttempts int
	// BindAt is when the sweep binds a sent SMS to its operator's id again (MessageIndex), because the send could not.
	// Zero if it is bound, or needs no binding. Until then its receipts wait in the index.
	BindAt time.Time
	// Manual is the manual resolution of an unknown outcome, if there was one. ManualReference is the operator's id in
	// its statement, "" for none; no merchant gets it. It is a field of its own, as Replays is.
	Manual          ManualResolution
	ManualReference string
	// DueAt is when the sweep must process the entry; zero for never. Only Reschedule sets it, to the earliest of all
	// timers.
	DueAt time.Time

	// Extra has the attributes that this version of the program does not know. They are written back as read, so that
	// an older version beside a newer one loses nothing.
	Extra any
}

// The JSON tags below are stored names, short for the item's size. docs/operations.md has them beside the long names.

// Claim is a status that an operator's callback claimed. A lookup must confirm it.
type Claim struct {
	Status            Status    `json:"su,omitempty"`
	OperatorReference string    `json:"opr,omitempty"`
	MSISDN            string    `json:"mn,omitempty"`
	At                time.Time `json:"at,omitzero"`
	CheckAt           time.Time `json:"ck,omitzero"` // the next lookup for it
}

// Conflict is a report that was kept and never applied.
type Conflict struct {
	Status Status    `json:"su"`
	Reason string    `json:"re"` // "final", "amount", "currency", "unconfirmed"
	Source string    `json:"so"` // "callback", "getStatus", "response" (to our own call), "manual"
	At     time.Time `json:"at"`
}

// Notification is one message to the merchant. ID is the webhook-id, the same on every attempt.
type Notification struct {
	ID            string    `json:"id"`
	Status        Status    `json:"su"`           // of a charge: Successful or Failed
	At            time.Time `json:"at"`           // when the status changed
	Attempts      int       `json:"n"`            // attempts with an outcome; 0: the relay makes the first
	RelayNotified bool      `json:"rn,omitempty"` // an earlier version has woken the relay for it
	NextAttemptAt time.Time `json:"nx,omitzero"`  // no attempt before; of a parked one, no check of its endpoint
	DeadReason    string    `json:"dr,omitempty"` // set once it is a dead letter
	Parked        bool      `json:"pd,omitempty"` // its endpoint is disabled, and its clock is stopped
	LastStatus    int       `json:"ls,omitzero"`  // HTTP status of the last attempt, 0 for none
	LastReason    string    `json:"lr,omitempty"` // why the last attempt failed
	DeliveredAt   time.Time `json:"dl,omitzero"`
}

// FailedAttempt is one failed delivery attempt.
type FailedAttempt struct {
	Status     Status    `json:"su"` // the notification's
	Number     int       `json:"n"`  // counts from 1, and from 1 again after a replay
	At         time.Time `json:"at"`
	HTTPStatus int       `json:"hs,omitzero"` // 0 for none
	Reason     string    `json:"re"`
}

// ReplayRecord is one manual replay of a notification, with the values that the replay cleared.
type ReplayRecord struct {
	Status      Status    `json:"su"` // the notification's
	At          time.Time `json:"at"` // when it was replayed
	Attempts    int       `json:"n"`
	DeliveredAt time.Time `json:"dl,omitzero"` // zero if it had not been delivered
	DeadReason  string    `json:"dr,omitempty"`
}
