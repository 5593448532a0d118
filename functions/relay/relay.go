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
	// storeMargin is what a delivery leaves of the invocation's time: for its endpoint's health, for storing what came
	// of it, and some to spare.
	storeMargin = 4 * time.Second
	// storeTimeout bounds that storing.
	storeTimeout = 2 * time.Second
)

// MaxBatchWait is how long a batch holds up what comes behind it in the stream, and how long the relay waits for the operator
// to take the purchaser's SMS: a slower operator is asked again by the sweep, under the same key.
const MaxBatchWait = 2 * time.Second

// maxInFlight bounds the records of earlier batches that are still being delivered in one process; past it, what comes is left
// to the sweep.
const maxInFlight = 200

// maxInFlightPerMerchant bounds those of one merchant, which can name another server each time, of which nothing is known yet: so the
// merchant's servers, however many hang, leave room for others'. It is four batches.
const maxInFlightPerMerchant = 100

// leftToSweep is the outcome of what the relay did not store as done: it stays due, and the sweep takes it up.
const leftToSweep = "left-to-sweep"

// Relay delivers what the stream shows.
type Relay struct {
	Book    *ledger.Book
	Courier *delivery.Courier
	// DecodeImage reads a stream record's new image; the ledger's store has it.
	DecodeImage func(image []byte) (*ledger.Entry, error)
	// StackName is the deployed stack's name, for the metrics.
	StackName string
	// MaxBatchWait is how long a batch is waited for; 0 for as long as it takes.
	MaxBatchWait time.Duration
	Now          func() time.Time
	Log          io.Writer

	inFlight atomic.Int64

	mutex              sync.Mutex
	inFlightByMerchant map[string]int // records under way by merchant's id
}

// streamEvent is a batch of stream records as Lambda hands it over.
type streamEvent struct {
	Records []struct {
		EventID  string `json:"eventID"`
		DynamoDB struct {
			NewImage json.RawMessage `json:"NewImage"`
		} `json:"dynamodb"`
	} `json:"Records"`
}

// batchResponse is the partial batch response. The list stays empty: what is not delivered is due, and the sweep's.
type batchResponse struct {
	BatchItemFailures []struct{} `json:"batchItemFailures"`
}

// Invoke delivers a batch, its records side by side, so that one merchant's slow server does not hold up another's. What
// takes longer than Patience goes on beside the next batches, as far as Lambda lets it: a function that is frozen wakes
// with a dead connection, or its entry is due and the sweep delivers it, under the same id. It implements aws-lambda-go's
// lambda.Handler.
func (r *Relay) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var batch streamEvent
	if err := json.Unmarshal(payload, &batch); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	if r.inFlight.Load() < maxInFlight {
		go r.deliverBatch(ctx, batch, done)
		r.waitForBatch(done)
	}
	return json.Marshal(batchResponse{BatchItemFailures: []struct{}{}})
}

// deliverBatch delivers the records of a batch and closes done. It may outlive its invocation, but not that one's deadline.
func (r *Relay) deliverBatch(ctx context.Context, batch streamEvent, done chan<- struct{}) {
	defer close(done)
	deadline, hasDeadline := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if hasDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-storeMargin))
		defer cancel()
	}
	var group sync.WaitGroup
	for _, record := range batch.Records {
		r.inFlight.Add(1)
		group.Go(func() {
			defer r.inFlight.Add(-1)
			r.deliverRecord(ctx, record.EventID, record.DynamoDB.NewImage)
		})
	}
	group.Wait()
	r.Courier.Sender.CloseIdle()
}

// waitForBatch waits for a batch, for as long as Patience lasts.
func (r *Relay) waitForBatch(done <-chan struct{}) {
	if r.MaxBatchWait == 0 {
		<-done
		return
	}
	timer := time.NewTimer(r.MaxBatchWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// deliverRecord delivers one entry and writes one line.
func (r *Relay) deliverRecord(ctx context.Context, id string, image json.RawMessage) {
	started := r.Now()
	line := telemetry.NewLogLine("relay", started)
	line.SetStackName(r.StackName)
	line.SetRequestID(id)
	defer func() {
		// One broken entry must not cost the others of the batch their delivery.
		if panicValue := recover(); panicValue != nil {
			line.SetCause(fmt.Errorf("panic %T", panicValue))
			line.SetOutcome(leftToSweep)
		}
		line.SetDuration(r.Now().Sub(started))
		_ = line.Write(r.Log)
	}()
	if err := r.deliverEntry(ctx, image, line); err != nil {
		line.SetCause(err)
		line.SetOutcome(leftToSweep)
	}
}

// deliverEntry posts the head of the outbox and sends the purchaser's SMS, side by side, and stores both results in one
// write. The SMS is never waited for before the post, and its own time is bounded. An endpoint that cannot be had, is
// disabled or whose fast path is closed leaves the post to the sweep, and the SMS goes all the same.
func (r *Relay) deliverEntry(ctx context.Context, image json.RawMessage, line *telemetry.LogLine) error {
	entry, err := r.DecodeImage(image)
	if err != nil {
		return err
	}
	line.SetMerchant(entry.Merchant)
	line.SetTransactionKey(entry.ID)
	line.SetOperator(entry.Operator)
	notification := entry.OutboxHead()
	if !entry.WakesRelay() || notification.NextAttemptAt.Sub(r.Now()) < ledger.FastMargin {
		line.SetOutcome("not-ours")
		return nil
	}
	releaseSlot, acquired := r.acquireSlot(entry.MerchantID)
	if !acquired {
		line.SetOutcome(leftToSweep)
		return nil
	}
	defer releaseSlot()
	var postChange, smsChange delivery.EntryChange
	var group sync.WaitGroup
	if entry.UserSMS == ledger.UserSMSDue {
		group.Go(func() { smsChange = r.sendUserSMS(ctx, entry) })
	}
	target, targetErr := r.Courier.FindTarget(ctx, entry)
	if targetErr == nil && target.AllowsFastPath() {
		postChange = r.Courier.PostNotification(ctx, entry, *notification, 1, target, line)
		line.SetOutcome("posted")
	} else {
		line.SetOutcome(leftToSweep)
	}
	group.Wait()
	if err := r.storeResults(ctx, entry, line, postChange, smsChange); err != nil {
		return err
	}
	return targetErr
}

// acquireSlot takes one of a merchant's places; leave gives it back.
func (r *Relay) acquireSlot(merchantID string) (releaseSlot func(), acquired bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.inFlightByMerchant[merchantID] >= maxInFlightPerMerchant {
		return nil, false
	}
	if r.inFlightByMerchant == nil {
		r.inFlightByMerchant = map[string]int{}
	}
	r.inFlightByMerchant[merchantID]++
	return func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.inFlightByMerchant[merchantID]--; r.inFlightByMerchant[merchantID] == 0 {
			delete(r.inFlightByMerchant, merchantID)
		}
	}, true
}

// sendUserSMS runs in a goroutine of its own, where a panic would end the process: then nothing is known, and the sweep
// tries again under the same key.
func (r *Relay) sendUserSMS(ctx context.Context, entry *ledger.Entry) (change delivery.EntryChange) {
	defer func() {
		if recover() != nil {
			change = nil
		}
	}()
	return r.Courier.SendUserSMS(ctx, entry)
}

// storeResults writes what the attempts changed, in one write; none where they changed nothing, as after a redelivery. The
// attempts may have used up their time: it has its own.
func (r *Relay) storeResults(ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine, attempts ...delivery.EntryChange) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	smsChanged := false
	stored, err := r.Book.ChangeKnown(ctx, entry, func(e *ledger.Entry) error {
		changed, before := false, e.UserSMS
		for _, change := range attempts {
			changed = change != nil && change(e) || changed
		}
		smsChanged = e.UserSMS != before
		if !changed {
			return ledger.ErrUnchanged
		}
		return nil
	})
	if err == nil && smsChanged && stored.UserSMS != ledger.UserSMSSent {
		line.Increment(telemetry.UserSMSFailures)
	}
	return err
}
