package operation

import (
	"context"
	"errors"
	"time"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

var errCircuitOpen = errors.New("the operator's account does not respond: its circuit is open")

// circuitOf is the circuit of an entry's account and operation.
func circuitOf(e *ledger.Entry) circuit.Key {
	return circuit.Key{Account: operator.PinOf(e).String(), Operation: string(e.Kind)}
}

// reserveFunc is one of the functions of a Book that reserve.
type reserveFunc func(
	ctx context.Context, e *ledger.Entry, resendWindow func(*ledger.Entry) time.Duration,
) (*ledger.Entry, ledger.Verdict, error)

// reserveByCircuit returns how to reserve a key that nothing else refuses, and the refusal of a new one (decision
// "circuit-breaker"). While the circuit is open nothing is written, and a key with an entry gets its response. While it
// is half open a key without an entry takes a probe, and is reserved then.
func (p *Pipeline) reserveByCircuit(a *Attempt, book *ledger.Book) (reserveFunc, error) {
	a.circuit = circuitOf(a.Entry)
	phase, wait := p.Circuits.Phase(a.circuit)
	switch phase {
	case circuit.Open:
		return book.FindExisting, circuitRefusal(wait)
	case circuit.HalfOpen:
		return p.probeFunc(a, book), circuitRefusal(wait)
	default:
		return book.Reserve, nil
	}
}

// circuitRefusal is the refusal by a circuit that takes no probe for a time.
func circuitRefusal(wait time.Duration) *fault.Fault {
	return &fault.Fault{
		Kind: fault.OperatorUnavailable, Reason: fault.ReasonCircuitOpen, Cause: errCircuitOpen,
		RetryAfter: int((wait + time.Second - 1) / time.Second),
	}
}

// bookOf returns the ledger of an attempt. A key that is taken over may be pinned to another account than a new one: it
// is refused if the circuit of that account is open.
func (p *Pipeline) bookOf(a *Attempt) *ledger.Book {
	if p.Circuits == nil {
		return p.Book
	}
	book := *p.Book
	book.MayTakeOver = func(next *ledger.Entry) error { return p.passCircuit(a, next) }
	return &book
}

// passCircuit checks the circuit of a takeover, unless reserveByCircuit has checked it. Its error is the refusal of an
// open circuit, and of a half-open one without a place for a probe.
func (p *Pipeline) passCircuit(a *Attempt, next *ledger.Entry) error {
	key := circuitOf(next)
	if key == a.circuit {
		return nil
	}
	switch phase, wait := p.Circuits.Phase(key); phase {
	case circuit.Open:
		return circuitRefusal(wait)
	case circuit.HalfOpen:
		probe, taken := p.Circuits.TakeProbe(key)
		if !taken {
			return circuitRefusal(wait)
		}
		a.circuit, a.probe = key, probe
	}
	return nil
}

// probeFunc returns how to reserve under a probe: the key is looked up first, and reserved only after the probe was
// taken.
func (p *Pipeline) probeFunc(a *Attempt, book *ledger.Book) reserveFunc {
	return func(ctx context.Context, e *ledger.Entry, resendWindow func(*ledger.Entry) time.Duration) (
		*ledger.Entry, ledger.Verdict, error,
	) {
		existing, verdict, err := book.FindExisting(ctx, e, resendWindow)
		if err != nil || existing != nil {
			return existing, verdict, err
		}
		var taken bool
		if a.probe, taken = p.Circuits.TakeProbe(a.circuit); !taken {
			return nil, 0, nil
		}
		return book.Reserve(ctx, e, resendWindow)
	}
}
