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

// Call is one call of the store. Entry is the entry to write, for Insert and Replace; an injector must not change it.
type Call struct {
	Operation Operation
	Key       ledger.Key
	Entry     *ledger.Entry
}

// InjectedFault is the fault of one call.
type InjectedFault int

// The faults.
const (
	NoFault                  InjectedFault = iota
	FailedBeforeApply                      // not applied; the caller gets an error
	LostResponse                           // applied; the caller gets an error all the same
	RetriedAfterLostResponse               // applied, then sent again; the caller gets the second response
	ConcurrentWrite                        // another write of the same content comes just before a Replace; only there
)

// ErrInjected is wrapped by every injected error.
var ErrInjected = errors.New("ledgermem: injected fault")

// IsInjected reports whether an error comes from a fault.
func IsInjected(err error) bool { return errors.Is(err, ErrInjected) }

// InjectFaults makes every later call get its fault from injector; nil for none. injector runs under the store's lock
// and must not call the store.
func (s *Store) InjectFaults(injector func(Call) InjectedFault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.injector = injector
}

// CallCount is the number of calls of an operation, faults included.
func (s *Store) CallCount(o Operation) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.callCounts[o]
}

// WriteCount is the number of writes, including those that failed.
func (s *Store) WriteCount() int {
	return s.CallCount(Insert) + s.CallCount(Replace) + s.CallCount(ClaimReference)
}

// runWithFault runs one call under the lock, with its fault.
func runWithFault[T any](ctx context.Context, s *Store, call Call, apply func() (T, error)) (result T, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.callCounts[call.Operation]++
	if err := ctx.Err(); err != nil {
		return result, fmt.Errorf("ledgermem: %s: %w", call.Operation, err)
	}
	fault := NoFault
	if s.injector != nil {
		fault = s.injector(call)
	}
	switch fault {
	case ConcurrentWrite:
		s.writeConcurrently(call)
	case LostResponse, RetriedAfterLostResponse:
		_, _ = apply() // its response is lost
	}
	if fault == FailedBeforeApply || fault == LostResponse {
		return result, fmt.Errorf("%w in %s", ErrInjected, call.Operation)
	}
	return apply()
}

// writeConcurrently is another write of the same content just before a Replace.
func (s *Store) writeConcurrently(call Call) {
	stored := s.entries[call.Key]
	if call.Operation != Replace || stored == nil {
		return
	}
	s.concurrentWrites++
	stored.Version++
	stored.Writer = fmt.Sprintf("another-%d", s.concurrentWrites)
}
