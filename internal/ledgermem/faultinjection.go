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

// InjectedFault is what goes wrong with one call.
type InjectedFault int

// The faults.
const (
	NoFault                  InjectedFault = iota
	FailedBeforeApply                      // nothing was applied; the caller gets an error
	LostResponse                           // it was applied; the caller gets an error all the same
	RetriedAfterLostResponse               // it was applied, the answer was lost, and the client sent it again: the caller gets the second answer
	ConcurrentWrite                        // another's write of the same content comes just before a Replace; other operations have no such fault
)

// ErrInjected is what every injected error wraps.
var ErrInjected = errors.New("ledgermem: injected fault")

// IsInjected says whether an error comes from a fault.
func IsInjected(err error) bool { return errors.Is(err, ErrInjected) }

// InjectFaults makes every later call ask inject what goes wrong with it; nil for nothing. inject runs under the store's lock and
// must not call the store.
func (s *Store) InjectFaults(injector func(Call) InjectedFault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.injector = injector
}

// CallCount is how often an operation was called, faults included.
func (s *Store) CallCount(o Operation) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.callCounts[o]
}

// WriteCount is how often anything was written or tried to be.
func (s *Store) WriteCount() int {
	return s.CallCount(Insert) + s.CallCount(Replace) + s.CallCount(ClaimReference)
}

// runWithFault runs one call under the lock with what the injector wants to go wrong.
func (s *Store) runWithFault(ctx context.Context, call Call, apply func() error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.callCounts[call.Operation]++
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ledgermem: %s: %w", call.Operation, err)
	}
	fault := NoFault
	if s.injector != nil {
		fault = s.injector(call)
	}
	switch fault {
	case FailedBeforeApply:
		return fmt.Errorf("%w in %s", ErrInjected, call.Operation)
	case ConcurrentWrite:
		s.writeConcurrently(call)
	case LostResponse:
		_ = apply() // whatever came of it, nobody hears it
		return fmt.Errorf("%w in %s", ErrInjected, call.Operation)
	case RetriedAfterLostResponse:
		_ = apply()
	}
	return apply()
}

// writeConcurrently is another's write of the same content just before a Replace.
func (s *Store) writeConcurrently(call Call) {
	stored := s.entries[call.Key]
	if call.Operation != Replace || stored == nil {
		return
	}
	s.concurrentWrites++
	stored.Version++
	stored.Writer = fmt.Sprintf("another-%d", s.concurrentWrites)
}
