// Package relay is the fast path of the outbox. The ledger table's stream invokes it when the first notification of an
// outbox has had no attempt yet. That can be a final payment status, or any SMS delivery receipt, also an intermediate
// one. The relay notifies the merchant, and the payer of a payment by SMS.
//
// It posts a final status without a lease of its own: for a short time after the write, a new notification belongs to
// the relay. It does not retry: the sweep delivers what the relay did not. Its invariants: it leaves an old stream
// image to the sweep; it leases the post of a status that another one may follow; a failed delivery never fails the
// batch.
package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/task"
	"mobilegateway/shared/telemetry"
)

const (
	// storeMargin is the part of the invocation's time that no delivery uses. It leaves time to store the endpoint's
	// health and the result.
	storeMargin = 4 * time.Second
	// maxInFlight bounds the records of earlier batches that one process still delivers. Further batches are left to
	// the sweep.
	maxInFlight = 200
	// maxInFlightPerMerchant bounds the records of one merchant: four batches. A merchant can use a new server, without
	// known health, for each order. The bound leaves room for other merchants if all of them hang.
	maxInFlightPerMerchant = 100
	// clockMargin is how long before the end of its fast lease a post must be written. The sweep leases after the
	// lease, by a clock that may be ahead.
	clockMargin = 5 * time.Second
	// leftToSweep is the outcome of a record whose entry stays due for the sweep.
	leftToSweep = "left-to-sweep"
)

// MaxBatchWait bounds how long a batch delays the next one of the stream, and how long the relay waits for the operator
// to accept the payer's SMS. The sweep retries a slower SMS under the same key.
const MaxBatchWait = 2 * time.Second

// Relay delivers the notifications of stream records.
type Relay struct {
	Book    *ledger.Book
	Courier *delivery.Courier
	// DecodeImage decodes the new image of a stream record.
	DecodeImage func(image []byte) (*ledger.Entry, error)
	// StackName is the name of the deployed stack, a dimension of the metrics.
	StackName string
	// MaxBatchWait bounds how long an invocation waits for its batch; 0 means no bound.
	MaxBatchWait time.Duration
	// Start starts the goroutines of a batch; nil means the go statement.
	Start task.Starter
	Now   func() time.Time
	Log   io.Writer

	inFlight atomic.Int64

	mutex              sync.Mutex
	inFlightByMerchant map[string]int // records in progress by merchant id
}

// streamEvent is the Lambda event of a batch of stream records.
type streamEvent struct {
	Records []struct {
		EventID  string `json:"eventID"`
		DynamoDB struct {
			NewImage json.RawMessage `json:"NewImage"`
		} `json:"dynamodb"`
	} `json:"Records"`
}

// batchResponse is the partial batch response. The list stays empty: an entry that was not delivered is due for the
// sweep.
type batchResponse struct {
	BatchItemFailures []struct{} `json:"batchItemFailures"`
}

// Invoke implements lambda.Handler of aws-lambda-go. It delivers the records of a batch concurrently, so that a slow
// server does not delay other merchants. A record that takes longer than MaxBatchWait continues during the next
// invocations. If Lambda freezes the function meanwhile, the sweep delivers the entry under the same id.
func (r *Relay) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var batch streamEvent
	if err := json.Unmarshal(payload, &batch); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	if r.inFlight.Load() >= maxInFlight {
		r.leaveToSweep(batch)
	} else {
		r.inFlight.Add(int64(len(batch.Records)))
		r.Start.Start(func() { r.deliverBatch(ctx, batch, done) })
		r.waitForBatch(done)
	}
	return json.Marshal(batchResponse{BatchItemFailures: []struct{}{}})
}

// leaveToSweep writes one log line for each record of a batch that is not taken up.
func (r *Relay) leaveToSweep(batch streamEvent) {
	for _, record := range batch.Records {
		r.logRecord(record.EventID, func(line *telemetry.LogLine) error {
			entry, err := r.DecodeImage(record.DynamoDB.NewImage)
			if err == nil {
				describeEntry(line, entry)
				line.SetOutcome(leftToSweep)
			}
			return err
		})
	}
}

// deliverBatch delivers the records of a batch and closes done. It may outlive its invocation, but not the invocation's
// deadline.
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
		r.Start.Go(&group, func() {
			defer r.inFlight.Add(-1)
			r.logRecord(record.EventID, func(line *telemetry.LogLine) error {
				return r.deliverEntry(ctx, record.DynamoDB.NewImage, line)
			})
		})
	}
	group.Wait()
	r.Courier.Sender.CloseIdle()
}

// waitForBatch waits for a batch, at most MaxBatchWait.
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

// logRecord processes a record and writes one log line. After an error the entry is left to the sweep.
func (r *Relay) logRecord(id string, process func(line *telemetry.LogLine) error) {
	line := telemetry.NewLogLine("relay", r.Now())
	line.SetStackName(r.StackName)
	line.SetRequestID(id)
	defer func() {
		// A panic must not prevent the delivery of the other records.
		if panicValue := recover(); panicValue != nil {
			line.SetCause(fmt.Errorf("panic %T", panicValue))
			line.SetOutcome(leftToSweep)
		}
		line.Finish(r.Now(), r.Log)
	}()
	if err := process(line); err != nil {
		line.SetCause(err)
		line.SetOutcome(leftToSweep)
	}
}

// deliverEntry concurrently posts the first notification of the outbox and sends the payer's SMS. It stores both
// results in one write. If the endpoint cannot be read, is disabled or has no fast path, the post is left to the sweep
// and the SMS is sent.
func (r *Relay) deliverEntry(ctx context.Context, image json.RawMessage, line *telemetry.LogLine) error {
	entry, err := r.DecodeImage(image)
	if err != nil {
		return err
	}
	describeEntry(line, entry)
	notification := entry.Outbox.Head()
	if !entry.Outbox.WakesRelay() || notification.NextAttemptAt.Sub(r.Now()) < ledger.FastMargin {
		line.SetOutcome("not-ours")
		return nil
	}
	releaseSlot, acquired := r.acquireSlot(entry.Merchant.ID)
	if !acquired {
		line.SetOutcome(leftToSweep)
		return nil
	}
	defer releaseSlot()
	var made changes
	var group sync.WaitGroup
	if entry.UserSMS.State == ledger.UserSMSDue {
		r.Start.Go(&group, func() { r.sendUserSMS(ctx, entry, &made) })
	}
	target, targetErr := r.Courier.FindTarget(ctx, entry)
	if targetErr == nil && target.AllowsFastPath() {
		claim := entry.Outbox.HeadClaim()
		if !notification.Status.Final() {
			entry, claim, err = r.leaseIntermediate(ctx, entry)
		}
		if claim != nil {
			notAfter := notification.NextAttemptAt.Add(-clockMargin)
			attempt := delivery.Attempt{DeliveryClaim: *claim, Target: target, NotAfter: notAfter}
			made.post = r.Courier.PostNotification(ctx, entry, attempt, line)
		}
	}
	line.SetOutcome("posted")
	if made.post == nil {
		line.SetOutcome(leftToSweep)
	}
	group.Wait()
	return cmp.Or(err, r.storeResults(ctx, entry, line, made), targetErr)
}

// leaseIntermediate leases the post of a status that another one may follow. Without it, a repeated record of the
// stream could post the earlier status after the later one (decision "notification-order"). claim is nil if the post
// was leased or made before.
func (r *Relay) leaseIntermediate(
	ctx context.Context, image *ledger.Entry,
) (entry *ledger.Entry, claim *ledger.DeliveryClaim, err error) {
	id, now := image.Outbox.Head().ID, ledger.Timestamp(r.Now())
	leased, made, err := delivery.Store(ctx, r.Book, image, func(e *ledger.Entry) ledger.Transition {
		head := e.Outbox.Head()
		return ledger.LeaseFastDelivery.If(head != nil && head.ID == id && e.Outbox.ClaimFastDelivery(now) != nil)
	})
	switch {
	case err != nil:
		return image, nil, err
	case made == ledger.NoTransition:
		return leased, nil, nil
	default:
		return leased, leased.Outbox.HeadClaim(), nil
	}
}

// describeEntry sets the fields of a log line that name an entry.
func describeEntry(line *telemetry.LogLine, entry *ledger.Entry) {
	line.SetMerchant(entry.Merchant.Name)
	line.SetTransactionKey(entry.ID)
	line.SetOperator(entry.Route.Operator)
}

// acquireSlot reserves one of a merchant's slots. acquired is false if all are in use.
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

// sendUserSMS sends the payer's SMS, while the fast lease lasts. A panic in its goroutine would end the process, so it
// recovers. The outcome is then unknown: the sweep retries under the same key.
func (r *Relay) sendUserSMS(ctx context.Context, entry *ledger.Entry, made *changes) {
	defer func() { _ = recover() }()
	if entry.UserSMS.At.Sub(r.Now()) >= clockMargin {
		made.userSMS = r.Courier.SendUserSMS(ctx, entry, entry.UserSMSClaim())
	}
}

// changes are the changes of the attempts at an entry; nil for one that was not made.
type changes struct{ post, userSMS delivery.EntryChange }

// apply applies both changes as one transition.
func (c changes) apply(e *ledger.Entry) ledger.Transition {
	var posted, sent ledger.Transition
	if c.post != nil {
		posted = c.post(e)
	}
	if c.userSMS != nil {
		sent = c.userSMS(e)
	}
	if posted != ledger.NoTransition && sent != ledger.NoTransition {
		return ledger.RecordPostAndUserSMS
	}
	return cmp.Or(posted, sent)
}

// storeResults stores the changes of the attempts in one write. It writes nothing if they change nothing, as after a
// repeated record.
func (r *Relay) storeResults(
	ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine, made changes,
) error {
	stored, transition, err := delivery.Store(ctx, r.Book, entry, made.apply)
	if err == nil && transition.Row().Changes&ledger.PartUserSMS != 0 && stored.UserSMS.GivenUp() {
		line.Increment(telemetry.UserSMSFailures)
	}
	return err
}
