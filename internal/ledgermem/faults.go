package ledgermem

import (
	"context"
	"errors"
	"fmt"

	"mobilegateway/shared/ledger"
)

// Operation names one of the store's methods.
type Operation string

// The operations.
const (
	Insert         Operation = "Insert"
	Replace        Operation = "Replace"
	ClaimReference Operation = "ClaimReference"
	Get            Operation = "Get"
	DueKeys        Operation = "DueKeys"
	Day            Operation = "Day"
)

// Call is what an injector is asked about. Entry is what is to be written, for Insert and Replace; it must not change it.
type Call struct {
	Operation Operation
	Key       ledger.Key
	Entry     *ledger.Entry
}

// Fault is what goes wrong with one call.
type Fault int

// The faults.
const (
	None       Fault = iota
	Error            // nothing was applied; the caller gets an error
	LostAnswer       // it was applied; the caller gets an error all the same
	Repeated         // it was applied, the answer was lost, and the client sent it again: the caller gets the second answer
	Conflict         // another's write of the same content comes just before a Replace; other operations have no such fault
)

// ErrInjected is what every injected error wraps.
var ErrInjected = errors.New("ledgermem: injected fault")

// IsInjected says whether an error comes from a fault.
func IsInjected(err error) bool { return errors.Is(err, ErrInjected) }

// SetFaults makes every later call ask inject what goes wrong with it; nil for nothing. inject runs under the store's lock and
// must not call the store.
func (s *Store) SetFaults(inject func(Call) Fault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.inject = inject
}

// Calls is how often an operation was called, faults included.
func (s *Store) Calls(o Operation) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.calls[o]
}

// Writes is how often anything was written or tried to be.
func (s *Store) Writes() int { return s.Calls(Insert) + s.Calls(Replace) + s.Calls(ClaimReference) }

// do runs one call under the lock with what the injector wants to go wrong.
func (s *Store) do(ctx context.Context, call Call, apply func() error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls[call.Operation]++
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ledgermem: %s: %w", call.Operation, err)
	}
	fault := None
	if s.inject != nil {
		fault = s.inject(call)
	}
	switch fault {
	case Error:
		return fmt.Errorf("%w in %s", ErrInjected, call.Operation)
	case Conflict:
		s.bump(call)
	case LostAnswer:
		_ = apply() // whatever came of it, nobody hears it
		return fmt.Errorf("%w in %s", ErrInjected, call.Operation)
	case Repeated:
		_ = apply()
	}
	return apply()
}

// bump is another's write of the same content just before a Replace.
func (s *Store) bump(call Call) {
	stored := s.entries[call.Key]
	if call.Operation != Replace || stored == nil {
		return
	}
	s.bumps++
	stored.Version++
	stored.Writer = fmt.Sprintf("another-%d", s.bumps)
}
