package storetest

import (
	"context"
	"time"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/circuit/dynamo"
)

// Circuits is the store of circuits. Any number of goroutines may use it.
type Circuits struct {
	Faults
	store *dynamo.Store
}

var _ circuit.Store = (*Circuits)(nil)

// NewCircuits makes an empty store without faults.
func NewCircuits() *Circuits { return &Circuits{store: dynamo.New(newClient(), table)} }

// Load implements circuit.Store.
func (c *Circuits) Load(ctx context.Context, key circuit.Key) (string, error) {
	return run(ctx, &c.Faults, Call{Operation: LoadCircuit}, func() (string, error) { return c.store.Load(ctx, key) })
}

// Swap implements circuit.Store.
func (c *Circuits) Swap(
	ctx context.Context, key circuit.Key, old, next string, expireAt time.Time,
) (current string, swapped bool, err error) {
	current, err = run(ctx, &c.Faults, Call{Operation: SwapCircuit}, func() (form string, err error) {
		form, swapped, err = c.store.Swap(ctx, key, old, next, expireAt)
		return form, err
	})
	return current, swapped && err == nil, err
}
