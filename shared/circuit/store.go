package circuit

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// Store keeps the stored forms of the states.
type Store interface {
	// Load reads the form of a circuit in one strongly consistent read; "" if there is none.
	Load(ctx context.Context, key Key) (string, error)
	// Swap replaces the form old, "" for none, by next. If the store has another form it changes nothing and returns
	// that one with swapped false. After an error the form may or may not be replaced. The item may be deleted after
	// expireAt.
	Swap(ctx context.Context, key Key, old, next string, expireAt time.Time) (current string, swapped bool, err error)
}

const (
	// maxSwaps bounds the attempts of one change: other processes write the same state. The end of a probe has more,
	// because no later write has it. All of them end with the caller's context.
	maxSwaps, maxEndSwaps = 3, 30
	// retention is how long after its last write an item is kept. It is longer than any state lives.
	retention = 48 * time.Hour
)

// Writer changes stored states. It has no state and is safe for concurrent use.
type Writer struct {
	Store Store
	Now   func() time.Time
	Rand  io.Reader
}

// Change applies a change to the state whose form the caller knows, "" for none. If the store has another form, it
// applies the change to that one. change returns false if there is nothing to store; now is in milliseconds since 1970.
// Change returns the form that the store has, and whether it stored a change. ErrNewer: a newer version's state is not
// changed. After another error the change may be stored; it is not sent again.
//
// To open a circuit, set the state to OpenedByPerson. To close it and to forget its results, set the zero State.
func (w *Writer) Change(
	ctx context.Context, key Key, known string, change func(s *State, now int64) bool,
) (current string, stored bool, err error) {
	return w.change(ctx, key, known, maxSwaps, change)
}

// change is Change with a number of attempts.
func (w *Writer) change(
	ctx context.Context, key Key, known string, attempts int, change func(s *State, now int64) bool,
) (current string, stored bool, err error) {
	for range attempts {
		state, err := Decode(known)
		if errors.Is(err, ErrNewer) {
			return known, false, err
		}
		now := w.Now()
		if !change(&state, now.UnixMilli()) {
			return known, false, nil
		}
		var random [8]byte
		if _, err := io.ReadFull(w.Rand, random[:]); err != nil {
			return known, false, err
		}
		state.writer = int64(binary.BigEndian.Uint64(random[:]) >> 1)
		form := state.Encode()
		found, swapped, err := w.Store.Swap(ctx, key, known, form, now.Add(retention))
		if err != nil {
			return known, false, err
		}
		if swapped || found == form { // the response to our own write was lost, and the client sent it again
			return form, true, nil
		}
		known = found
	}
	return known, false, nil
}
