package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mobilegateway/shared/ledger"
)

// Operation names a method of a store.
type Operation string

// The operations.
const (
	Insert         Operation = "Insert"
	Replace        Operation = "Replace"
	ClaimReference Operation = "ClaimReference"
	BindMessage    Operation = "BindMessage"
	FindMessage    Operation = "FindMessage"
	Get            Operation = "Get"
	GetAll         Operation = "GetAll"
	GetBatch       Operation = "GetBatch"
	DueKeys        Operation = "DueKeys"
	MoveDue        Operation = "MoveDue"
	Day            Operation = "Day"

	UpdateRate Operation = "UpdateRate"
	Adjust     Operation = "Adjust"

	LoadCircuit Operation = "Load"
	SwapCircuit Operation = "Swap"

	ReadProfile   Operation = "Profile"
	CreateProfile Operation = "Create"
	UpdateProfile Operation = "Update"
	ListProfiles  Operation = "IDByName or IDs"

	ReadHealth   Operation = "Health"
	SaveHealth   Operation = "SaveHealth"
	SaveDisabled Operation = "SaveDisabled"
)

// Call is one call of a store. Key is the key of the ledger's entry.
type Call struct {
	Operation Operation
	Key       ledger.Key

	// writeConcurrently makes another write of the same item first, or returns the error of a conflict.
	writeConcurrently func() error
}

// Fault is the fault of one call.
type Fault int

// The faults.
const (
	NoFault                  Fault = iota
	FailedBeforeApply              // not applied; the caller gets an error
	LostResponse                   // applied; the caller gets an error all the same
	RetriedAfterLostResponse       // applied, then sent again; the caller gets the second response
	ConcurrentWrite                // another write of the item comes just before; only for Replace and for limits
)

// ErrInjected is wrapped by the error of every call with a fault.
var ErrInjected = errors.New("storetest: injected fault: no response from the table")

// Faults counts the calls of a store, and injects their faults. Any number of goroutines may use it.
type Faults struct {
	// Err, if set, fails every call before it is applied. Set it between calls.
	Err error

	mutex    sync.Mutex
	injector func(Call) Fault
	counts   map[Operation]int
	onCrash  map[string]func()
}

// InjectFaults makes every later call get its fault from injector; nil for none. injector runs under the store's lock
// and must not call the store.
func (f *Faults) InjectFaults(injector func(Call) Fault) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.injector = injector
}

// FailNext makes the next calls of one operation get these faults in turn. Every other call gets none.
func (f *Faults) FailNext(operation Operation, faults ...Fault) {
	f.InjectFaults(func(call Call) Fault {
		if call.Operation != operation || len(faults) == 0 {
			return NoFault
		}
		next := faults[0]
		faults = faults[1:]
		return next
	})
}

// SetCrashPoint sets a function that runs once, outside the store's lock, the next time that a point is reached:
// "before Insert", "after Replace".
func (f *Faults) SetCrashPoint(point string, onCrash func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.onCrash = map[string]func(){point: onCrash}
}

func (f *Faults) hitCrashPoint(point string) {
	f.mutex.Lock()
	onCrash := f.onCrash[point]
	delete(f.onCrash, point)
	f.mutex.Unlock()
	if onCrash != nil {
		onCrash()
	}
}

// CallCount is the number of calls of an operation, faults included.
func (f *Faults) CallCount(o Operation) int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.counts[o]
}

// WriteCount is the number of writes, including those that failed. A MoveDue is not counted.
func (f *Faults) WriteCount() int {
	count := 0
	for _, write := range []Operation{
		Insert, Replace, ClaimReference, BindMessage, FindMessage, UpdateRate, Adjust, SaveHealth, SaveDisabled,
	} {
		count += f.CallCount(write)
	}
	return count
}

// run runs one call under the lock, with its fault. With an injected error the result is the zero value.
func run[T any](ctx context.Context, f *Faults, call Call, apply func() (T, error)) (result T, err error) {
	f.hitCrashPoint("before " + string(call.Operation))
	defer f.hitCrashPoint("after " + string(call.Operation))
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.counts == nil {
		f.counts = map[Operation]int{}
	}
	f.counts[call.Operation]++
	fault := NoFault
	if f.injector != nil && ctx.Err() == nil {
		fault = f.injector(call)
	}
	switch {
	case f.Err != nil:
		return result, f.Err
	case fault == LostResponse, fault == RetriedAfterLostResponse:
		_, _ = apply() // its response is lost
	case fault == ConcurrentWrite && call.writeConcurrently != nil:
		if err := call.writeConcurrently(); err != nil {
			return result, err
		}
	}
	if fault == FailedBeforeApply || fault == LostResponse {
		return result, fmt.Errorf("%w in %s", ErrInjected, call.Operation)
	}
	return apply()
}

// runError is run for a call that returns only an error.
func runError(ctx context.Context, f *Faults, call Call, apply func() error) error {
	_, err := run(ctx, f, call, func() (struct{}, error) { return struct{}{}, apply() })
	return err
}
