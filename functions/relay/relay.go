// Package relay is the fast path of the outbox. The ledger table's stream invokes it when the first notification of an
// outbox has had no attempt yet. That can be a final payment status, or any SMS delivery receipt, also an intermediate
// one. The relay notifies the merchant, and the payer of a payment by SMS.
//
// It posts a final status without a lease of its own: for a short time after the write, a new notification belongs to
// the relay. It does not retry: the sweep delivers what the relay did not. It leaves an old stream image to the sweep,
// and leases the post of a status that another one may follow. A failed delivery never fails the batch. Its invariant:
// nothing of an invocation runs after its return, because Lambda freezes the function then.
package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/task"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/webhook"
)

const (
	// clockMargin is how long before the end of its fast lease a post must be written. The sweep leases after the
	// lease, by a clock that may be ahead.
	clockMargin = 5 * time.Second
	// leftToSweep is the outcome of a record whose entry stays due for the sweep.
	leftToSweep = "left-to-sweep"
)

// Limits bound the steps of an invocation, which ends within Send and twice Store. So a slow server delays the next
// batch of the stream by this time at most.
type Limits struct {
	// Prepare bounds the reads and the lease before a post, so that the post has Send without Prepare at least.
	Prepare time.Duration
	// Send bounds the post and the payer's SMS, with all that comes before them. Then they are cut off.
	Send time.Duration
	// Store is what each of the two writes after them gets at least: the server's health, and the results.
	Store time.Duration
}

// ShippedLimits returns the limits of a deployment. An invocation ends within 2.5 seconds.
func ShippedLimits() Limits {
	return Limits{Prepare: 2*time.Second - webhook.QuickThreshold, Send: 2 * time.Second, Store: time.Second / 4}
}

// total is the longest duration of an invocation.
func (l Limits) total() time.Duration { return l.Send + 2*l.Store }

// Relay delivers the notifications of stream records.
type Relay struct {
	Book    *ledger.Book
	Courier *delivery.Courier
	// DecodeImage decodes the new image of a stream record.
	DecodeImage func(image []byte) (*ledger.Entry, error)
	// StackName is the name of the deployed stack, a dimension of the metrics.
	StackName string
	Limits    Limits
	// Start starts the goroutines of a batch; nil means the go statement.
	Start task.Starter
	Now   func() time.Time
	Log   io.Writer

	hanging hangingServers
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
// server does not delay other merchants, and returns after the last one. A notification that is not delivered within
// the limits stays due, and the sweep delivers it under the same id.
func (r *Relay) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var batch streamEvent
	if err := json.Unmarshal(payload, &batch); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limits.total(), webhook.ErrCutOff)
	defer cancel()
	var group sync.WaitGroup
	for _, record := range batch.Records {
		r.Start.Go(&group, func() {
			r.logRecord(record.EventID, func(line *telemetry.LogLine) error {
				return r.deliverEntry(ctx, record.DynamoDB.NewImage, line)
			})
		})
	}
	group.Wait()
	r.Courier.Sender.CloseIdle()
	return json.Marshal(batchResponse{BatchItemFailures: []struct{}{}})
}

// logRecord processes a record and writes one log line. After an error the entry is left to the sweep.
func (r *Relay) logRecord(id string, process func(line *telemetry.LogLine) error) {
	line := telemetry.NewLogLine("relay", r.Now())
	line.SetStackName(r.StackName)
	line.SetRequestID(id)
	defer func() {
		// A panic must not prevent the delivery of the other records.
		if panicValue := recover(); panicValue != nil {
			line.SetCause(logsafe.Errorf("panic %s", logsafe.TypeOf(panicValue)))
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
	if !entry.Outbox.WakesRelay() || entry.Outbox.Head().NextAttemptAt.Sub(r.Now()) < ledger.FastMargin {
		line.SetOutcome("not-ours")
		return nil
	}
	sending, cancel := context.WithTimeoutCause(ctx, r.Limits.Send, webhook.ErrCutOff)
	defer cancel()
	var made changes
	var group sync.WaitGroup
	defer group.Wait() // also after a panic: nothing may run after the invocation
	if entry.UserSMS.State == ledger.UserSMSDue {
		r.Start.Go(&group, func() { r.sendUserSMS(sending, entry, &made) })
	}
	known, posted, postErr := r.post(sending, entry, line)
	made.post = posted
	line.SetOutcome("posted")
	if made.post == nil {
		line.SetOutcome(leftToSweep)
	}
	group.Wait()
	return cmp.Or(r.storeResults(ctx, known, line, made), postErr)
}

// post posts the first notification of the outbox, and returns the entry as it is then known. posted is nil if nothing
// was posted, or if the post was cut off: it may have arrived, spends no attempt, and stays due.
func (r *Relay) post(
	ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine,
) (known *ledger.Entry, posted delivery.EntryChange, err error) {
	preparing, cancel := context.WithTimeout(ctx, r.Limits.Prepare)
	defer cancel()
	notification := entry.Outbox.Head()
	target, err := r.Courier.FindTarget(preparing, entry)
	if err != nil || !target.AllowsFastPath() || r.hanging.tooMany(entry.Merchant.ID, r.Now()) {
		return entry, nil, err
	}
	claim := entry.Outbox.HeadClaim()
	if !notification.Status.Final() {
		entry, claim, err = r.leaseIntermediate(preparing, entry)
	}
	if err = cmp.Or(err, preparing.Err()); err != nil || claim == nil {
		return entry, nil, err
	}
	notAfter := notification.NextAttemptAt.Add(-clockMargin)
	attempt := delivery.Attempt{DeliveryClaim: *claim, Target: target, NotAfter: notAfter}
	posted = r.Courier.PostNotification(ctx, entry, attempt, line)
	if posted == nil && ctx.Err() != nil {
		r.hanging.add(target.Server(), r.Now())
		err = context.Cause(ctx)
	}
	return entry, posted, err
}

// leaseIntermediate leases the post of a status that another one may follow. Without it, a repeated record of the
// stream could post the earlier status after the later one (decision "notification-order"). claim is nil if the post
// was leased or made before.
func (r *Relay) leaseIntermediate(
	ctx context.Context, image *ledger.Entry,
) (entry *ledger.Entry, claim *ledger.DeliveryClaim, err error) {
	id, now := image.Outbox.Head().ID, ledger.Timestamp(r.Now())
	leased, made, err := r.Book.ChangeKnown(ctx, image, func(e *ledger.Entry) (ledger.Transition, error) {
		head := e.Outbox.Head()
		isFirst := head != nil && head.ID == id && e.Outbox.ClaimFastDelivery(now) != nil
		return ledger.LeaseFastDelivery.If(isFirst), nil
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
// repeated record. The function may have been frozen during the attempts: then the invocation's time is over, and the
// write has a short time of its own.
func (r *Relay) storeResults(
	ctx context.Context, entry *ledger.Entry, line *telemetry.LogLine, made changes,
) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), r.Limits.Store)
		defer cancel()
	}
	stored, transition, err := r.Book.ChangeKnown(ctx, entry, func(e *ledger.Entry) (ledger.Transition, error) {
		return made.apply(e), nil
	})
	if err == nil && transition.Row().Changes&ledger.PartUserSMS != 0 && stored.UserSMS.GivenUp() {
		line.Increment(telemetry.UserSMSFailures)
	}
	return err
}
