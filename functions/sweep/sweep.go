// Package sweep processes the due entries each minute. It marks lapsed leases, looks payments up, confirms claims,
// expires payments, delivers notifications and sends the payer's SMS. It is the fallback of all other functions.
//
// It is a fair queue (decision "fair-queue"). Its cost is proportional to the number of due entries. Its invariants: it
// reads an entry before it acts on it, because the index lags. A write leases each lookup, post and SMS before it is
// made, so that concurrent sweeps make it once. Each entry that it looked at moves on, also if nothing could be done.
// Workers only use the stores; each call of another system takes one of that system's bounded slots. An entry without
// a slot waits in line while that system is well, and is postponed otherwise. An account's lookups are within the rate
// of its platform's row (decision "lookup-rate").
package sweep

import (
	"context"
	"io"
	"sync"
	"time"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/task"
)

const (
	// startMargin is the remaining invocation time below which no job starts: the longest delivery and its write.
	startMargin = 20 * time.Second
	// storeMargin is the part of the invocation's time that is left for the write.
	storeMargin = 3 * time.Second
)

// Sweep processes due entries. It is safe for concurrent use.
type Sweep struct {
	Queue ledger.DueQueue
	Book  *ledger.Book
	// Messages finds messages by the ids of platforms that send all receipts to one address.
	Messages  ledger.MessageIndex
	Confirmer *confirm.Confirmer
	Courier   *delivery.Courier
	// Circuits are those of the operators' accounts, nil for none. ReadCircuits reads the accounts that are in use.
	Circuits     *circuit.Circuits
	ReadCircuits func(ctx context.Context)
	// StackName is the name of the deployed stack, a dimension of the metrics.
	StackName string
	// PollSchedule has the wait before each lookup of a pending payment; the last wait repeats.
	PollSchedule []time.Duration
	// PaymentLifetime is the age from which a pending payment may expire. UnresponsiveRetry is the interval of its
	// lookups after that, while the operator does not respond.
	PaymentLifetime   time.Duration
	UnresponsiveRetry time.Duration
	// SweepInterval is the time between two sweeps.
	SweepInterval time.Duration
	// Start starts the goroutines of a pass; nil means the go statement. Sleep waits, or returns the context's error.
	Start task.Starter
	Sleep func(ctx context.Context, wait time.Duration) error
	Now   func() time.Time
	Log   io.Writer

	results lookupResults
}

// pass is one run of the sweep.
type pass struct {
	*Sweep
	startedAt time.Time
	jobs      []job
	slots     slotTable
	courier   *delivery.Courier // with the health of endpoints that the pass has just read
	calls     sync.WaitGroup    // the goroutines with outside calls

	mutex    sync.Mutex
	returned []ledger.Key // to be processed in the next round
}

// returnKeys lets the workers process keys again, in the next round.
func (p *pass) returnKeys(keys []ledger.Key) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.returned = append(p.returned, keys...)
}

func (p *pass) takeReturned() []ledger.Key {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	keys := p.returned
	p.returned = nil
	return keys
}

// outOfTime reports whether too little of the invocation's time is left to start another job.
func (p *pass) outOfTime(ctx context.Context) bool {
	deadline, hasDeadline := ctx.Deadline()
	return hasDeadline && deadline.Sub(p.Now()) < startMargin-storeMargin
}

// applyChange is delivery.Store for a change whose result nothing needs.
func (p *pass) applyChange(
	ctx context.Context, entry *ledger.Entry, change func(*ledger.Entry) ledger.Transition,
) (*ledger.Entry, error) {
	stored, _, err := delivery.Store(ctx, p.Book, entry, change)
	return stored, err
}
