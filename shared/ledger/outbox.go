package ledger

import (
	"slices"
	"time"
)

// Outbox has the notifications of an entry and where they go. UnrecordedAttempts and Replays are attributes of their
// own: an older version keeps an unknown attribute, but would lose a new member of a Notification.
type Outbox struct {
	URL        string // payments: notif_url; SMS: notifyURL; charges: CallOutcome.NotifyURL; "" for none
	From       AddressSource
	NotifToken string
	// Waiting has the undelivered notifications, oldest first; only the first that is not a dead letter is attempted.
	// Delivered has the delivered ones, oldest first, at most MaxDelivered: those that ReplayNotification can send
	// again.
	Waiting   []Notification
	Delivered []Notification
	// UnrecordedAttempts counts the claims of the head's next attempt that have no recorded outcome.
	UnrecordedAttempts int
	// FailedAttempts are the failed delivery attempts, oldest first, at most MaxAttempts.
	FailedAttempts []FailedAttempt
	// Replays are the manual replays of notifications, oldest first, at most MaxReplays.
	Replays []ReplayRecord
}

// AddressSource is where the address of an entry's notifications comes from (decision "notification-address").
type AddressSource string

// The sources. The values are stored, and short for the item's size.
const (
	AddressOfRequest AddressSource = ""  // URL, which the request named; also of entries without a source
	AddressOfProfile AddressSource = "p" // the profile's present notif_url; URL is that of the reservation
	AddressFormer    AddressSource = "f" // URL, although it was the profile's: a person chose it
)

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

// FastLease is how long only the relay, woken by the stream, may attempt a new notification; after it the sweep may
// claim it. FastMargin is the part of it that must remain for a post without a claim: an older image is a redelivery.
const (
	FastLease  = 60 * time.Second
	FastMargin = 20 * time.Second
)

const (
	// MaxDelivered bounds the delivered notifications that an entry remembers: more than a payment or an SMS can have.
	MaxDelivered = 8
	// MaxAttempts bounds the failed attempts that an entry remembers: the whole schedules of two notifications.
	MaxAttempts = 20
	// MaxUnrecordedAttempts bounds the claims of one attempt without a recorded outcome: about 23 hours of claims.
	MaxUnrecordedAttempts = 50
	// ReasonNoOutcome is the reason of a dead letter whose last MaxUnrecordedAttempts claims have no outcome.
	ReasonNoOutcome = "no-outcome"
	// maxReason bounds the text of a failed attempt's reason, in bytes.
	maxReason = 200
)

const (
	// minClaimLease is the lease of the first claim of an attempt. It doubles with each claim to maxClaimLease.
	minClaimLease, maxClaimLease = time.Minute, 30 * time.Minute
	// minPostponement and maxPostponement bound the wait of an act that could not be done.
	minPostponement, maxPostponement = time.Minute, 5 * time.Minute
	// firstParkedCheck is the wait before a parked notification's endpoint is read again for the first time: it may
	// have been enabled while the notification was being parked. The other two bound the later waits.
	firstParkedCheck               = time.Minute
	minParkedCheck, maxParkedCheck = time.Hour, 24 * time.Hour
)

// claimLease is the lease of a claim. unrecorded counts the claims without an outcome, this one included.
func claimLease(unrecorded int) time.Duration {
	const doublings = 5 // more than maxClaimLease
	return min(minClaimLease<<min(max(unrecorded-1, 0), doublings), maxClaimLease)
}

// Postponement is the wait of an act that could not be done at now, and could first have been done at since. It grows
// with the age of the act.
func Postponement(since, now time.Time) time.Duration {
	return min(max(now.Sub(since)/2, minPostponement), maxPostponement)
}

// active is true if the notification may be attempted: it is neither a dead letter nor parked.
func (n *Notification) active() bool { return n.DeadReason == "" && !n.Parked }

// headIndex is the position of the head in the outbox, -1 for none.
func (o *Outbox) headIndex() int {
	return slices.IndexFunc(o.Waiting, func(n Notification) bool { return n.DeadReason == "" })
}

// Head is the one notification that may be attempted; nil for none. It is the first that is not a dead letter.
// The others wait, also behind a parked one, so that an earlier status is never delivered after a later one (decision
// "notification-order").
func (o *Outbox) Head() *Notification {
	at := o.headIndex()
	if at < 0 {
		return nil
	}
	return &o.Waiting[at]
}

// activeHead is the head, if it may be attempted.
func (o *Outbox) activeHead() *Notification {
	if head := o.Head(); head != nil && head.active() {
		return head
	}
	return nil
}

// headWithID is the head, if it has the id: what happened to another notification does not count.
func (o *Outbox) headWithID(id string) *Notification {
	if head := o.Head(); head != nil && head.ID == id {
		return head
	}
	return nil
}

// enqueue appends the notification of a status of key's entry, if there is a URL for it.
func (o *Outbox) enqueue(key Key, status Status, now time.Time) {
	if o.URL == "" {
		return
	}
	o.Waiting = append(o.Waiting, Notification{ID: NotificationID(key, status), Status: status, At: now})
	if o.headIndex() == len(o.Waiting)-1 {
		o.scheduleHead(now)
	}
}

// NotificationID is the webhook-id of one status of one entry: the same on every attempt, in every process. A charge
// has one notification, so its id is the charge's own: the body of a refusal names no charge (decision "charge-notif").
func NotificationID(key Key, status Status) string {
	if key.Kind == Charge {
		return key.ID
	}
	return derive("notification", string(key.Kind), key.ID, string(status))
}

// scheduleHead makes the head due: after FastLease if it was never attempted, else at once.
func (o *Outbox) scheduleHead(now time.Time) {
	o.UnrecordedAttempts = 0
	head := o.Head()
	if head == nil {
		return
	}
	head.NextAttemptAt, head.RelayNotified = now, false
	if head.Attempts == 0 {
		head.NextAttemptAt = now.Add(FastLease)
	}
}

// DeliveryClaim is a claim of an attempt at the head of the outbox. The pair of Attempts and UnrecordedAttempts is its
// fence: the failure of an attempt counts only if the entry still has this pair.
type DeliveryClaim struct {
	Notification
	UnrecordedAttempts int
}

// HeadClaim is the claim on the head as it is. The relay uses it during FastLease, without a write; nil for no head.
func (o *Outbox) HeadClaim() *DeliveryClaim {
	head := o.activeHead()
	if head == nil {
		return nil
	}
	return &DeliveryClaim{Notification: *head, UnrecordedAttempts: o.UnrecordedAttempts}
}

// DeliveryDue is true if the head is due for an attempt.
func (o *Outbox) DeliveryDue(now time.Time) bool {
	head := o.activeHead()
	return head != nil && !head.NextAttemptAt.After(now)
}

// ClaimDelivery makes the next attempt the caller's: no other caller claims it before the claim's lease has ended. The
// lease grows with each claim that has no recorded outcome. After MaxUnrecordedAttempts such claims the head becomes a
// dead letter instead, and UnrecordedAttempts is 0. Otherwise HeadClaim is the claim. It returns whether the entry
// changed.
func (o *Outbox) ClaimDelivery(now time.Time) bool {
	if !o.DeliveryDue(now) {
		return false
	}
	if o.UnrecordedAttempts >= MaxUnrecordedAttempts {
		return o.DeadLetter(o.Head().ID, ReasonNoOutcome, now)
	}
	o.UnrecordedAttempts++
	o.Head().NextAttemptAt = now.Add(claimLease(o.UnrecordedAttempts))
	return true
}

// ClaimFastDelivery makes the first attempt at the head the relay's, while FastLease lasts. A repeated record of the
// stream then posts nothing. claim is nil, and nothing changed, if the attempt was claimed or made before.
func (o *Outbox) ClaimFastDelivery(now time.Time) (claim *DeliveryClaim) {
	head := o.activeHead()
	if head == nil || head.Attempts > 0 || o.UnrecordedAttempts > 0 || !head.NextAttemptAt.After(now) {
		return nil
	}
	o.UnrecordedAttempts++
	return o.HeadClaim()
}

// MarkDelivered moves the delivered notification from the outbox to Delivered, and makes the next one due. It returns
// whether id was the head or a dead letter; if not, it was delivered before.
func (o *Outbox) MarkDelivered(id string, now time.Time) bool {
	at := slices.IndexFunc(o.Waiting, func(n Notification) bool { return n.ID == id })
	head := o.headIndex()
	if at < 0 || at != head && o.Waiting[at].DeadReason == "" {
		return false
	}
	delivered := o.Waiting[at]
	delivered.DeliveredAt, delivered.NextAttemptAt, delivered.Parked, delivered.DeadReason = now, time.Time{}, false, ""
	delivered.Attempts++
	o.Waiting = slices.Delete(o.Waiting, at, at+1)
	if len(o.Waiting) == 0 {
		o.Waiting = nil
	}
	o.Delivered = latest(append(o.Delivered, delivered), MaxDelivered)
	if at == head {
		o.scheduleHead(now)
	}
	return true
}

// RecordFailedAttempt records the failure of a claimed attempt; the next one is not before next. It returns false, and
// records nothing, if the attempt was claimed again, has an outcome, or is no longer at the head. a.Reason is a short
// text of ours without any value of the merchant's.
func (o *Outbox) RecordFailedAttempt(claim DeliveryClaim, a FailedAttempt, next time.Time) bool {
	head := o.headWithID(claim.ID)
	if head == nil || head.Attempts != claim.Attempts || o.UnrecordedAttempts != claim.UnrecordedAttempts {
		return false
	}
	a.Number, a.Status, a.Reason = claim.Attempts+1, head.Status, a.Reason[:min(len(a.Reason), maxReason)]
	head.Attempts, head.NextAttemptAt, o.UnrecordedAttempts = a.Number, next, 0
	head.LastStatus, head.LastReason = a.HTTPStatus, a.Reason
	o.FailedAttempts = latest(append(o.FailedAttempts, a), MaxAttempts)
	return true
}

// latest is the end of a list, at most limit long.
func latest[T any](list []T, limit int) []T { return list[max(0, len(list)-limit):] }

// DeadLetter makes the head a dead letter, with the reason, and makes the next notification due. The dead letter stays
// in the outbox until it is replayed. It returns whether the entry changed.
func (o *Outbox) DeadLetter(id, reason string, now time.Time) bool {
	head := o.headWithID(id)
	if head == nil || reason == "" {
		return false
	}
	head.DeadReason, head.NextAttemptAt, head.Parked = reason, time.Time{}, false
	o.scheduleHead(now)
	return true
}

// PostponeDelivery moves a due head to next without counting an attempt, because the attempt cannot be made now. It
// returns whether the head was due.
func (o *Outbox) PostponeDelivery(now, next time.Time) bool {
	if !o.DeliveryDue(now) {
		return false
	}
	o.Head().NextAttemptAt = next
	return true
}

// Park stops the head's clock while the merchant's endpoint is disabled. The sweep reads the endpoint again after a
// minute, then hourly, later daily: it may have been enabled while this write was on its way. Park returns whether the
// clock was running.
func (o *Outbox) Park(now time.Time) bool {
	head := o.activeHead()
	if head == nil {
		return false
	}
	head.Parked, head.NextAttemptAt, o.UnrecordedAttempts = true, now.Add(firstParkedCheck), 0
	return true
}

// ParkedCheckDue is true if the endpoint of a parked head must be read again.
func (o *Outbox) ParkedCheckDue(now time.Time) bool {
	head := o.Head()
	return head != nil && head.Parked && !head.NextAttemptAt.IsZero() && !head.NextAttemptAt.After(now)
}

// PostponeParkedCheck makes the next check of a parked head due later. It returns whether a check was due.
func (o *Outbox) PostponeParkedCheck(now time.Time) bool {
	if !o.ParkedCheckDue(now) {
		return false
	}
	head := o.Head()
	head.NextAttemptAt = now.Add(min(max(now.Sub(head.At)/2, minParkedCheck), maxParkedCheck))
	return true
}

// Unpark makes a parked head due again. It returns whether it was parked.
func (o *Outbox) Unpark(now time.Time) bool {
	head := o.Head()
	if head == nil || !head.Parked {
		return false
	}
	head.Parked = false
	o.scheduleHead(now)
	return true
}

// WakesRelay is true if the stream must wake the relay for this version. The head of the outbox is active and was never
// attempted, and no earlier version has woken the relay for it. The stream's filter reads an attribute with this value.
func (o *Outbox) WakesRelay() bool {
	head := o.activeHead()
	return head != nil && head.Attempts == 0 && o.UnrecordedAttempts == 0 && !head.RelayNotified
}

// markRelayNotified records, before a change, that the current version has woken the relay for its head. Without it,
// each write before the delivery would wake the relay again, such as a conflict or the next status. The relay would
// post the head twice, perhaps after the next status (decision "notification-order").
func (o *Outbox) markRelayNotified() {
	if head := o.Head(); head != nil {
		head.RelayNotified = true
	}
}
