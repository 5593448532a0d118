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
func (p *Pipeline) reserveByCircuit(a *Attempt) (reserveFunc, error) {
	key := circuitOf(a.Entry)
	phase, wait := p.Circuits.Phase(key)
	refusal := &fault.Fault{
		Kind: fault.OperatorUnavailable, Reason: fault.ReasonCircuitOpen, Cause: errCircuitOpen,
		RetryAfter: int((wait + time.Second - 1) / time.Second),
	}
	switch phase {
	case circuit.Open:
		return p.Book.FindExisting, refusal
	case circuit.HalfOpen:
		return p.probeFunc(a, key), refusal
	default:
		return p.Book.Reserve, nil
	}
}

// probeFunc returns how to reserve under a probe: the key is looked up first, and reserved only after the probe was
// taken.
func (p *Pipeline) probeFunc(a *Attempt, key circuit.Key) reserveFunc {
	return func(ctx context.Context, e *ledger.Entry, resendWindow func(*ledger.Entry) time.Duration) (
		*ledger.Entry, ledger.Verdict, error,
	) {
		existing, verdict, err := p.Book.FindExisting(ctx, e, resendWindow)
		if err != nil || existing != nil {
			return existing, verdict, err
		}
		var taken bool
		if a.probe, taken = p.Circuits.TakeProbe(key); !taken {
			return nil, 0, nil
		}
		return p.Book.Reserve(ctx, e, resendWindow)
	}
}
