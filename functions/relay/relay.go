// Package relay is the fast path of the outbox: the ledger table's stream wakes it when a status has become final, and it
// tells the merchant and the purchaser at once.
//
// It posts without a claim, which the entry's own lease allows for a short time; whatever it does not deliver, the sweep
// does. Its invariants: an older image is left to the sweep; a delivery that fails is never a failed batch.
package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/telemetry"
)

const (
	// settleReserve is what a delivery leaves of the invocation's time: for its endpoint's health, for storing what came
	// of it, and some to spare.
	settleReserve = 4 * time.Second
	// storeTimeout bounds that storing.
	storeTimeout = 2 * time.Second
)

// Patience is how long a batch holds up what comes behind it in the stream, and how long the relay waits for the operator
// to take the purchaser's SMS: a slower operator is asked again by the sweep, under the same key.
const Patience = 2 * time.Second

// maxLate bounds the records of earlier batches that are still being delivered in one process; past it, what comes is left
// to the sweep.
const maxLate = 200

// maxOfOne bounds those of one merchant, which can name another server each time, of which nothing is known yet: so the
// merchant's servers, however many hang, leave room for others'. It is four batches.
const maxOfOne = 100

// leftToSweep is the outcome of what the relay did not store as done: it stays due, and the sweep takes it up.
const leftToSweep = "left-to-sweep"

// Relay delivers what the stream shows.
type Relay struct {
	Book    *ledger.Book
	Courier *delivery.Courier
	// Decode reads a stream record's new image; the ledger's store has it.
	Decode func(image []byte) (*ledger.Entry, error)
	// Stack is the deployed stack's name, for the metrics.
	Stack string
	// Patience is how long a batch is waited for; 0 for as long as it takes.
	Patience time.Duration
	Now      func() time.Time
	Log      io.Writer

	late atomic.Int64

	mutex sync.Mutex
	of    map[string]int // records under way by merchant's id
}

// event is a batch of stream records as Lambda hands it over.
type event struct {
	Records []struct {
		EventID  string `json:"eventID"`
		DynamoDB struct {
			NewImage json.RawMessage `json:"NewImage"`
		} `json:"dynamodb"`
	} `json:"Records"`
}

// answer is the partial batch response. The list stays empty: what is not delivered is due, and the sweep's.
type answer struct {
	BatchItemFailures []struct{} `json:"batchItemFailures"`
}

// Invoke delivers a batch, its records side by side, so that one merchant's slow server does not hold up another's. What
// takes longer than Patience goes on beside the next batches, as far as Lambda lets it: a function that is frozen wakes
// with a dead connection, or its entry is due and the sweep delivers it, under the same id. It implements aws-lambda-go's
// lambda.Handler.
func (r *Relay) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var batch event
	if err := json.Unmarshal(payload, &batch); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	if r.late.Load() < maxLate {
		go r.batch(ctx, batch, done)
		r.wait(done)
	}
	return json.Marshal(answer{BatchItemFailures: []struct{}{}})
}

// batch delivers the records of a batch and closes done. It may outlive its invocation, but not that one's deadline.
func (r *Relay) batch(ctx context.Context, batch event, done chan<- struct{}) {
	defer close(done)
	deadline, limited := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-settleReserve))
		defer cancel()
	}
	var group sync.WaitGroup
	for _, record := range batch.Records {
		r.late.Add(1)
		group.Go(func() {
			defer r.late.Add(-1)
			r.record(ctx, record.EventID, record.DynamoDB.NewImage)
		})
	}
	group.Wait()
	r.Courier.Sender.CloseIdle()
}

// wait waits for a batch, for as long as Patience lasts.
func (r *Relay) wait(done <-chan struct{}) {
	if r.Patience == 0 {
		<-done
		return
	}
	patience := time.NewTimer(r.Patience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
}

// record delivers one entry and writes one line.
func (r *Relay) record(ctx context.Context, id string, image json.RawMessage) {
	started := r.Now()
	line := telemetry.New("relay", started)
	line.SetStack(r.Stack)
	line.SetRequestID(id)
	defer func() {
		// One broken entry must not cost the others of the batch their delivery.
		if panicked := recover(); panicked != nil {
			line.SetCause(fmt.Errorf("panic %T", panicked))
			line.SetOutcome(leftToSweep)
		}
		line.SetTotal(r.Now().Sub(started))
		_ = line.Write(r.Log)
	}()
	if err := r.deliver(ctx, image, line); err != nil {
		line.SetCause(err)
		line.SetOutcome(leftToSweep)
	}
}

// deliver posts the head of the outbox and sends the purchaser's SMS, side by side, and stores both results in one
// write. The SMS is never waited for before the post, and its own time is bounded. An endpoint that cannot be had, is
// disabled or whose fast path is closed leaves the post to the sweep, and the SMS goes all the same.
func (r *Relay) deliver(ctx context.Context, image json.RawMessage, line *telemetry.Event) error {
	entry, err := r.Decode(image)
	if err != nil {
		return err
	}
	line.SetMerchant(entry.Merchant)
	line.SetKey(entry.ID)
	line.SetOperator(entry.Operator)
	head := entry.Head()
	if !entry.Fast() || head.Next.Sub(r.Now()) < ledger.FastMargin {
		line.SetOutcome("not-ours")
		return nil
	}
	leave, free := r.enter(entry.MerchantID)
	if !free {
		line.SetOutcome(leftToSweep)
		return nil
	}
	defer leave()
	var posted, sent delivery.Change
	var group sync.WaitGroup
	if entry.UserSMS == ledger.UserSMSDue {
		group.Go(func() { sent = r.userSMS(ctx, entry) })
	}
	to, failure := r.Courier.Endpoint(ctx, entry)
	if failure == nil && to.FastPath() {
		posted = r.Courier.Post(ctx, entry, *head, 1, to, line)
		line.SetOutcome("posted")
	} else {
		line.SetOutcome(leftToSweep)
	}
	group.Wait()
	if err := r.store(ctx, entry, line, posted, sent); err != nil {
		return err
	}
	return failure
}

// enter takes one of a merchant's places; leave gives it back.
func (r *Relay) enter(merchantID string) (leave func(), free bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.of[merchantID] >= maxOfOne {
		return nil, false
	}
	if r.of == nil {
		r.of = map[string]int{}
	}
	r.of[merchantID]++
	return func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.of[merchantID]--; r.of[merchantID] == 0 {
			delete(r.of, merchantID)
		}
	}, true
}

// userSMS runs in a goroutine of its own, where a panic would end the process: then nothing is known, and the sweep
// tries again under the same key.
func (r *Relay) userSMS(ctx context.Context, entry *ledger.Entry) (change delivery.Change) {
	defer func() {
		if recover() != nil {
			change = nil
		}
	}()
	return r.Courier.UserSMS(ctx, entry)
}

// store writes what the attempts changed, in one write; none where they changed nothing, as after a redelivery. The
// attempts may have used up their time: it has its own.
func (r *Relay) store(ctx context.Context, entry *ledger.Entry, line *telemetry.Event, attempts ...delivery.Change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	sms := false
	stored, err := r.Book.Apply(ctx, entry, func(e *ledger.Entry) error {
		changed, before := false, e.UserSMS
		for _, change := range attempts {
			changed = change != nil && change(e) || changed
		}
		sms = e.UserSMS != before
		if !changed {
			return ledger.ErrUnchanged
		}
		return nil
	})
	if err == nil && sms && stored.UserSMS != ledger.UserSMSSent {
		line.Count(telemetry.UserSMSFailures)
	}
	return err
}
