package ledger

import (
	"context"
	"encoding/base64"
	"io"
	"time"

	"mobilegateway/shared/logsafe"
)

// maxWriteAttempts bounds how often a change is applied again because another write came first.
const maxWriteAttempts = 8

// tokenBytes is the length of an owner's or writer's token before base64: 128 random bits.
const tokenBytes = 16

// ErrContended means that other writes came first every time. Nothing was stored; the caller may try again.
var ErrContended = logsafe.New("ledger: too many concurrent writes of one entry")

// Book reserves and changes entries through a Store: every write is conditional, and DueAt is right. It has no state;
// any number of goroutines may use one.
type Book struct {
	Store  Writer
	Reader Reader // only for Change and Find; may be nil without them
	Now    func() time.Time
	Rand   io.Reader
	// MayTakeOver is called with each entry that a takeover would store; nil refuses none. Its error ends Reserve and
	// ReserveExisting, and nothing is written.
	MayTakeOver func(next *Entry) error
}

// Reserve reserves e's key; e needs LeaseUntil. With NewReservation and TakenOver the result is the caller's
// reservation: call the operator with its fields, not with those of e. With any other verdict it is the entry that has
// the key. resendWindow returns how long after the first send the operator may get a second one; nil means never. e is
// not changed. A first request costs one write, a repeat one call, a takeover two.
func (b *Book) Reserve(
	ctx context.Context, e *Entry, resendWindow func(*Entry) time.Duration,
) (*Entry, Verdict, error) {
	fresh, err := b.newReservation(e)
	if err != nil {
		return nil, 0, err
	}
	existing, err := b.Store.Insert(ctx, fresh, Reserve)
	if err != nil {
		return nil, 0, err
	}
	if existing == nil {
		return fresh, NewReservation, nil
	}
	return b.takeOver(ctx, existing, fresh, resendWindow, true)
}

// ReserveExisting is Reserve for a key that may not be reserved for the first time. It returns nil if no entry binds
// the key: there is none, or it was released without binding its body. It costs one read more, and needs the Reader.
func (b *Book) ReserveExisting(
	ctx context.Context, e *Entry, resendWindow func(*Entry) time.Duration,
) (*Entry, Verdict, error) {
	existing, err := b.Find(ctx, e.Key)
	if err != nil || existing == nil {
		return nil, 0, err
	}
	fresh, err := b.newReservation(e)
	if err != nil {
		return nil, 0, err
	}
	return b.takeOver(ctx, existing, fresh, resendWindow, false)
}

// FindExisting is Reserve for a time in which nothing can be sent: it writes nothing. It returns nil for a key that is
// new or released. An entry that would be taken over to send it again is StillUnknown.
func (b *Book) FindExisting(ctx context.Context, e *Entry, _ func(*Entry) time.Duration) (*Entry, Verdict, error) {
	existing, err := b.Find(ctx, e.Key)
	verdict := Decide(existing, e, Timestamp(b.Now()), 0)
	if err != nil || verdict == NewReservation || verdict == TakenOver {
		return nil, 0, err
	}
	return existing, verdict, nil
}

// Restore stores a transaction that a restore of the ledger lost, as unknown: the operator may have applied it. e needs
// its key, merchant, route, what is known of its request and amount, and CreatedAt, which is when it was reserved. An
// amount of 0 is not known. t is RestoreLost. It returns the entry that has the key, and whether it was
// stored. It costs one write.
func (b *Book) Restore(ctx context.Context, e *Entry, t Transition) (entry *Entry, stored bool, err error) {
	writer, err := b.token()
	if err != nil {
		return nil, false, err
	}
	now := Timestamp(b.Now())
	next := e.Clone()
	next.Version, next.Writer, next.Owner, next.UpdatedAt = 1, writer, writer, now
	next.SentAt, next.ReservedAt = e.CreatedAt, e.CreatedAt
	if e.Kind == Payment {
		next.Status = Pending
	}
	next.loseAttempts(now)
	truncateTimes(next)
	next.Reschedule()
	existing, err := b.Store.Insert(ctx, next, t)
	if err != nil || existing != nil {
		return existing, false, err
	}
	return next, true, nil
}

// BindReference binds the referenceCode of a reserved charge to it, and returns the id of the charge that owns it (see
// Writer.ClaimReference). It costs one write.
func (b *Book) BindReference(ctx context.Context, charge *Entry) (ownerChargeID string, err error) {
	return b.Store.ClaimReference(ctx, charge)
}

// newReservation returns a copy of e as the first reservation of its key.
func (b *Book) newReservation(e *Entry) (*Entry, error) {
	now := Timestamp(b.Now())
	owner, err := b.token()
	if err != nil {
		return nil, err
	}
	fresh := e.Clone()
	fresh.BeginReservation(owner, now)
	truncateTimes(fresh)
	fresh.Writer = owner
	if !fresh.Leased(now) {
		return nil, logsafe.New("ledger: the lease of a reservation must end after now: set LeaseUntil")
	}
	return fresh, nil
}

// takeOver decides on fresh, and takes existing over if that is allowed. After a lost race it decides once more, on the
// entry that won. Unless mayBind, it returns nil for an entry that binds no body.
func (b *Book) takeOver(
	ctx context.Context, existing, fresh *Entry, resendWindow func(*Entry) time.Duration, mayBind bool,
) (*Entry, Verdict, error) {
	for range 2 {
		if !mayBind && existing.State == Released && existing.Request.Fingerprint == "" {
			return nil, 0, nil
		}
		var window time.Duration
		if resendWindow != nil {
			window = resendWindow(existing)
		}
		verdict := Decide(existing, fresh, fresh.UpdatedAt, window)
		if verdict == NewReservation { // it expired after the put: the next request gets the key
			break
		}
		if verdict != TakenOver {
			return existing, verdict, nil
		}
		next := existing.TakeOver(fresh, fresh.Owner, fresh.UpdatedAt)
		next.Writer = fresh.Writer
		if b.MayTakeOver != nil {
			if err := b.MayTakeOver(next); err != nil {
				return nil, 0, err
			}
		}
		current, err := b.Store.Replace(ctx, next, TakeOver)
		if err != nil {
			return nil, 0, err
		}
		if current == nil {
			return next, TakenOver, nil
		}
		existing = current
	}
	return existing, InFlight, nil
}

// StoreOutcome stores the outcome of the operator call made under a reservation by a transition that the caller knows,
// and returns the entry as stored. The caller responds by its State and stored response, which may differ from the
// outcome. A release may count as Unknown, and a callback or another attempt may have come first. A successor may still
// be at work: respond to Reserved as to Unknown. A former owner's success is stored too. It costs one write, and one
// more for each write in between. After ErrContended, ErrNotFound or the store's error the result is not known: respond
// as to Unknown.
func (b *Book) StoreOutcome(
	ctx context.Context, reservation *Entry, t Transition, outcome CallOutcome,
) (*Entry, error) {
	return b.ApplyChange(ctx, reservation, func(e *Entry) Transition {
		return t.If(e.ApplyOutcome(reservation.Owner, outcome, Timestamp(b.Now())))
	})
}

// Find reads an entry; nil if there is none, or if it is past its retention.
func (b *Book) Find(ctx context.Context, key Key) (*Entry, error) {
	e, err := b.Reader.Get(ctx, key)
	if err != nil || e == nil || e.PastRetention(Timestamp(b.Now())) {
		return nil, err
	}
	return e, nil
}

// Change reads an entry, applies a pure change and stores the result, which it returns. If another write came first, it
// applies the change to that version. change returns which transition it made; after NoTransition nothing is stored. It
// may run several times, each time on a new copy. Its error ends Change and is returned. ErrNotFound: there is no such
// entry.
func (b *Book) Change(ctx context.Context, key Key, change func(*Entry) (Transition, error)) (*Entry, error) {
	e, err := b.Find(ctx, key)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, ErrNotFound
	}
	stored, _, err := b.ChangeKnown(ctx, e, change)
	return stored, err
}

// ChangeKnown is Change for an entry that was read already, such as a stream image. It saves the read; if the entry has
// changed since, it costs one more call. It also returns the transition that was stored. ErrNotFound also if the entry
// has expired since, and its key was reserved again: that is another transaction.
func (b *Book) ChangeKnown(
	ctx context.Context, known *Entry, change func(*Entry) (Transition, error),
) (stored *Entry, made Transition, err error) {
	for range maxWriteAttempts {
		next := known.Clone()
		next.Outbox.markRelayNotified()
		t, err := change(next)
		if err != nil {
			return nil, NoTransition, err
		}
		if t == NoTransition {
			return known, NoTransition, nil
		}
		writer, err := b.token()
		if err != nil {
			return nil, NoTransition, err
		}
		next.Version, next.Writer, next.UpdatedAt = known.Version+1, writer, Timestamp(b.Now())
		truncateTimes(next)
		next.Reschedule()
		current, err := b.Store.Replace(ctx, next, t)
		if err != nil {
			return nil, NoTransition, err
		}
		if current == nil {
			return next, t, nil
		}
		if !current.CreatedAt.Equal(next.CreatedAt) {
			return nil, NoTransition, ErrNotFound
		}
		known = current
	}
	return nil, NoTransition, ErrContended
}

// ApplyChange is ChangeKnown for a change that cannot fail.
func (b *Book) ApplyChange(ctx context.Context, known *Entry, change func(*Entry) Transition) (*Entry, error) {
	stored, _, err := b.ChangeKnown(ctx, known, func(e *Entry) (Transition, error) { return change(e), nil })
	return stored, err
}

// token draws a random token.
func (b *Book) token() (string, error) {
	var random [tokenBytes]byte
	if _, err := io.ReadFull(b.Rand, random[:]); err != nil {
		return "", logsafe.Errorf("ledger: drawing a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(random[:]), nil
}
