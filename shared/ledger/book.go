package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxWriteAttempts bounds how often a change is applied anew because another write came first.
const maxWriteAttempts = 8

// tokenBytes is the length of an owner's or writer's token before hex: 128 random bits.
const tokenBytes = 16

// ErrContended says that other writes came first every time. Nothing of ours was stored; the same may be tried again.
var ErrContended = errors.New("ledger: too many writers at once")

// ErrUnchanged is returned by a change function that found nothing to do. Change then writes nothing.
var ErrUnchanged = errors.New("ledger: nothing to change")

// Book is the ledger as the flows use it: it reserves, settles and changes entries through a Store, so that every write
// is fenced and the due time is right. It holds no state; any number of goroutines may use one.
type Book struct {
	Store  Writer
	Reader Reader // for Change and Find alone; nil where they are not used
	Now    func() time.Time
	Rand   io.Reader
}

// Reserve reserves e's key, which needs LeaseUntil set, or says why not. Fresh and Retaken: held is the caller's
// reservation, and the operator is to be called by the facts of held, not of e. Otherwise held is the entry that has
// the key. repeatSafe tells an operator's repeat window; nil means never. e itself is not changed.
// A first request costs one write, a repeat one call, a takeover two.
func (b *Book) Reserve(ctx context.Context, e *Entry, repeatSafe func(operator string) time.Duration) (reservation *Entry, v Verdict, err error) {
	now := Timestamp(b.Now())
	owner, err := b.token()
	if err != nil {
		return nil, 0, err
	}
	fresh := e.Clone()
	fresh.BeginReservation(owner, now)
	fresh.truncateTimes()
	fresh.Writer = owner
	if !fresh.Leased(now) {
		return nil, 0, errors.New("ledger: a reservation needs a lease that ends after now")
	}
	existing, err := b.Store.Insert(ctx, fresh)
	if err != nil {
		return nil, 0, err
	}
	if existing == nil {
		return fresh, NewReservation, nil
	}
	return b.takeOver(ctx, existing, fresh, repeatSafe)
}

// takeOver decides what becomes of fresh, and takes existing over where that is allowed. A lost race is decided once
// more on the entry that won it.
func (b *Book) takeOver(ctx context.Context, existing, fresh *Entry, repeatSafe func(string) time.Duration) (*Entry, Verdict, error) {
	for range 2 {
		var window time.Duration
		if repeatSafe != nil {
			window = repeatSafe(existing.Operator)
		}
		v := Decide(existing, fresh, fresh.UpdatedAt, window)
		if v == NewReservation { // expired between the put and now: the next request gets the key
			return existing, InFlight, nil
		}
		if v != TakenOver {
			return existing, v, nil
		}
		next := existing.TakeOver(fresh, fresh.Owner, fresh.UpdatedAt)
		next.Writer = fresh.Writer
		current, err := b.Store.Replace(ctx, next)
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

// StoreOutcome stores what came of the operator call under the reservation held, and returns the entry as it stands then: the
// caller answers by its State and stored answer. Usually that is what was settled; it is not where a release did not
// stand (Unknown), where a callback or another attempt came first (its answer), or where a successor is still at work
// (Reserved: answer as unknown). The success of a former owner settles too. One write, and one more for each write that
// came between. ErrContended, ErrNotFound, or the store's error: nothing is known, answer as unknown.
func (b *Book) StoreOutcome(ctx context.Context, reservation *Entry, s CallOutcome) (*Entry, error) {
	return b.ChangeKnown(ctx, reservation, func(e *Entry) error {
		if !e.ApplyOutcome(reservation.Owner, s, Timestamp(b.Now())) {
			return ErrUnchanged
		}
		return nil
	})
}

// Find reads an entry; nil when there is none or it has expired.
func (b *Book) Find(ctx context.Context, key Key) (*Entry, error) {
	e, err := b.Reader.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if e == nil || e.PastRetention(Timestamp(b.Now())) {
		return nil, nil
	}
	return e, nil
}

// Change reads an entry, applies a pure change, and stores it; when another write came first, it applies the change to
// what that one stored. change may run several times, each time on a fresh copy; its error ends it and is returned as
// it is, but for ErrUnchanged, which stores nothing. It returns the entry as it stands then. ErrNotFound where there is none.
func (b *Book) Change(ctx context.Context, key Key, change func(*Entry) error) (*Entry, error) {
	e, err := b.Find(ctx, key)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, ErrNotFound
	}
	return b.ChangeKnown(ctx, e, change)
}

// ChangeKnown is Change on an entry already in hand, such as a stream image: it saves the read, and an entry that has been
// changed since costs one more call.
func (b *Book) ChangeKnown(ctx context.Context, known *Entry, change func(*Entry) error) (*Entry, error) {
	for range maxWriteAttempts {
		next := known.Clone()
		next.markRelayNotified()
		if err := change(next); err != nil {
			if errors.Is(err, ErrUnchanged) {
				return known, nil
			}
			return nil, err
		}
		writer, err := b.token()
		if err != nil {
			return nil, err
		}
		next.Version, next.Writer, next.UpdatedAt = known.Version+1, writer, Timestamp(b.Now())
		next.truncateTimes()
		next.Reschedule()
		current, err := b.Store.Replace(ctx, next)
		if err != nil {
			return nil, err
		}
		if current == nil {
			return next, nil
		}
		known = current
	}
	return nil, ErrContended
}

// token draws a random token.
func (b *Book) token() (string, error) {
	var random [tokenBytes]byte
	if _, err := io.ReadFull(b.Rand, random[:]); err != nil {
		return "", fmt.Errorf("ledger: drawing a token: %w", err)
	}
	return hex.EncodeToString(random[:]), nil
}
