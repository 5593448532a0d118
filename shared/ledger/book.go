package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxTries bounds how often a change is applied anew because another write came first.
const maxTries = 8

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

// Hold reserves e's key, which needs LeaseUntil set, or says why not. Fresh and Retaken: held is the caller's
// reservation, and the operator is to be called by the facts of held, not of e. Otherwise held is the entry that has
// the key. repeatSafe tells an operator's repeat window; nil means never. e itself is not changed.
// A first request costs one write, a repeat one call, a takeover two.
func (b *Book) Hold(ctx context.Context, e *Entry, repeatSafe func(operator string) time.Duration) (held *Entry, v Verdict, err error) {
	now := Moment(b.Now())
	owner, err := b.token()
	if err != nil {
		return nil, 0, err
	}
	fresh := e.Clone()
	fresh.Begin(owner, now)
	fresh.normalise()
	fresh.Writer = owner
	if !fresh.Live(now) {
		return nil, 0, errors.New("ledger: a reservation needs a lease that ends after now")
	}
	existing, err := b.Store.Insert(ctx, fresh)
	if err != nil {
		return nil, 0, err
	}
	if existing == nil {
		return fresh, Fresh, nil
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
		if v == Fresh { // expired between the put and now: the next request gets the key
			return existing, Busy, nil
		}
		if v != Retaken {
			return existing, v, nil
		}
		next := existing.Retake(fresh, fresh.Owner, fresh.UpdatedAt)
		next.Writer = fresh.Writer
		current, err := b.Store.Replace(ctx, next)
		if err != nil {
			return nil, 0, err
		}
		if current == nil {
			return next, Retaken, nil
		}
		existing = current
	}
	return existing, Busy, nil
}

// Settle stores what came of the operator call under the reservation held, and returns the entry as it stands then: the
// caller answers by its State and stored answer. Usually that is what was settled; it is not where a release did not
// stand (Unknown), where a callback or another attempt came first (its answer), or where a successor is still at work
// (Reserved: answer as unknown). The success of a former owner settles too. One write, and one more for each write that
// came between. ErrContended, ErrGone, or the store's error: nothing is known, answer as unknown.
func (b *Book) Settle(ctx context.Context, held *Entry, s Settlement) (*Entry, error) {
	return b.Apply(ctx, held, func(e *Entry) error {
		if !e.Settle(held.Owner, s, Moment(b.Now())) {
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
	if e == nil || e.Expired(Moment(b.Now())) {
		return nil, nil
	}
	return e, nil
}

// Change reads an entry, applies a pure change, and stores it; when another write came first, it applies the change to
// what that one stored. change may run several times, each time on a fresh copy; its error ends it and is returned as
// it is, but for ErrUnchanged, which stores nothing. It returns the entry as it stands then. ErrGone where there is none.
func (b *Book) Change(ctx context.Context, key Key, change func(*Entry) error) (*Entry, error) {
	e, err := b.Find(ctx, key)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, ErrGone
	}
	return b.Apply(ctx, e, change)
}

// Apply is Change on an entry already in hand, such as a stream image: it saves the read, and an entry that has been
// changed since costs one more call.
func (b *Book) Apply(ctx context.Context, known *Entry, change func(*Entry) error) (*Entry, error) {
	for range maxTries {
		next := known.Clone()
		next.show()
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
		next.Version, next.Writer, next.UpdatedAt = known.Version+1, writer, Moment(b.Now())
		next.normalise()
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
