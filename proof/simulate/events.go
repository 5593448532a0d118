package simulate

import (
	"strings"
	"time"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

const (
	sweepInterval  = time.Minute
	maxBatch       = 25
	maxRecordAge   = time.Minute // of a record that the stream delivers again
	maxBatchTries  = 4
	streamLatency  = 200 * time.Millisecond
	streamShards   = 4
	missingSweep   = 30 * time.Minute
	streamLateness = 70 * time.Second
)

// stream delivers the records of the ledger's table to the relay, one batch of a shard at a time.
type stream struct {
	sequence int64 // of the last change that was seen
	pending  [streamShards][]*model.Change
	busy     [streamShards]bool
}

// followChanges follows the changes since the last step: it queues those that wake the relay, and schedules the next
// sweep.
func (w *World) followChanges() {
	hasChanged := w.readChanges(func(record *model.Change) {
		w.stream.pending[record.Shard] = append(w.stream.pending[record.Shard], record)
		w.scheduleBatch(record.Shard)
	})
	if hasChanged {
		w.scheduleSweep()
	}
}

// readChanges reads and checks the changes since the last step, and reports whether there are any. wake gets those that
// wake the relay.
func (w *World) readChanges(wake func(*model.Change)) bool {
	changes := w.database.Changes(w.stream.sequence)
	for _, change := range changes {
		w.stream.sequence = change.Sequence
		if i := w.writer; i != nil && i.function == functionEngineer && !i.isAudited {
			w.checker.fail(10, "gatewayctl changed %s without an audit record", change.Key)
		}
		if change.Table == limitTable {
			w.checker.amounts.change(change)
		}
		if change.Table != ledgerTable {
			continue
		}
		w.checker.change(change)
		if _, wakes := change.New()[ledgerdynamo.WakeAttribute]; wakes {
			wake(change)
		}
	}
	w.checker.checkAccepted()
	w.writer = nil
	if len(changes) > 0 {
		w.checker.amounts.check()
	}
	return len(changes) > 0
}

// scheduleBatch schedules the next batch of a shard.
func (w *World) scheduleBatch(shard int) {
	if w.stream.busy[shard] || len(w.stream.pending[shard]) == 0 {
		return
	}
	w.stream.busy[shard] = true
	wait := streamLatency
	if w.HappensNow("late stream", w.Rates.LateStream) {
		wait = tape.Draw(w.Tape, "lateness of the stream", 5*time.Second, 35*time.Second, streamLateness, 2*time.Minute,
			24*time.Hour)
		w.Logf("stream: shard %d is %s late", shard, wait)
		w.Count("stream: late record")
	}
	if now := time.Now(); w.streamOff.Contains(now) {
		wait = w.streamOff.To.Sub(now)
	}
	w.Kernel.At(time.Now().Add(wait), "stream", func() {
		count := min(len(w.stream.pending[shard]), maxBatch)
		batch := w.stream.pending[shard][:count:count]
		w.stream.pending[shard] = w.stream.pending[shard][count:]
		w.deliverBatch(shard, batch, 1)
	})
}

// deliverBatch invokes the relay with a batch, and again after a failure, as Lambda does.
func (w *World) deliverBatch(shard int, batch []*model.Change, try int) {
	w.Counts.Batches++
	w.invoke(functionRelay, model.LambdaEvent(batch...), func(r result) {
		failed := r.lost || r.err != nil
		old := time.Since(batch[0].Time) > maxRecordAge
		again := w.HappensNow("batch delivered twice", w.Rates.DoubleStream)
		if again {
			w.Count("stream: batch twice")
		}
		if failed && !old && try < maxBatchTries || again {
			w.Kernel.At(time.Now().Add(time.Second), "stream retry", func() { w.deliverBatch(shard, batch, try+1) })
			return
		}
		w.stream.busy[shard] = false
		w.scheduleBatch(shard)
	})
}

// scheduleSweep schedules the next sweep for the first full minute at which an entry is due. A sweep over an empty
// index does nothing, so those are left out.
func (w *World) scheduleSweep() {
	due := w.firstDue()
	if due.IsZero() {
		return
	}
	if due.Before(time.Now()) {
		due = time.Now()
	}
	at := due.Truncate(sweepInterval)
	if at.Before(due) || !at.After(time.Now()) {
		at = at.Add(sweepInterval)
	}
	if at.After(w.End) || !w.nextSweep.IsZero() && !w.nextSweep.After(at) {
		return
	}
	if w.HappensNow("no sweep", w.Rates.NoSweep) {
		at = at.Add(missingSweep)
		w.Count("sweeps missing")
	}
	w.nextSweep = at
	w.Kernel.At(at, "sweep", func() {
		if !w.nextSweep.Equal(at) {
			return // an earlier one was scheduled since
		}
		w.nextSweep = time.Time{}
		w.sweep()
		if w.HappensNow("sweep twice", w.Rates.DoubleSweep) {
			w.Count("sweep twice")
			w.sweep()
		}
	})
}

// sweep invokes the sweep. The next one does not wait for its end.
func (w *World) sweep() {
	w.Counts.Sweeps++
	at := time.Now()
	w.invoke(functionSweep, []byte(`{}`), func(r result) {
		if r.err != nil && time.Now().After(w.CalmFrom.Add(time.Minute)) {
			w.Fail("the sweep of %s failed without a fault: %s", at, r.err)
		}
		w.scheduleSweep()
	})
	w.Kernel.At(at.Add(time.Second), "next sweep", w.scheduleSweep)
}

// scheduleOperator schedules the next own event of an operator.
func (w *World) scheduleOperator(o *outside.Operator) {
	next, found := o.Next()
	planned := w.operatorNext[o.Name]
	if !found || next.After(w.End) || !planned.IsZero() && !planned.After(next) {
		return
	}
	w.operatorNext[o.Name] = next
	w.Kernel.At(next, "operator", func() {
		if !w.operatorNext[o.Name].Equal(next) {
			return
		}
		w.operatorNext[o.Name] = time.Time{}
		for _, callback := range o.Due(time.Now()) {
			w.callback(o, callback)
		}
		w.scheduleOperator(o)
	})
}

// callback sends a callback or a receipt to the gateway, and reports the response to the operator.
func (w *World) callback(o *outside.Operator, callback outside.Callback) {
	payload, err := outside.CallbackEvent(callback.URL, callback.Body)
	if err != nil {
		w.Fail("%s", err)
		return
	}
	function := functionNotif
	if strings.Contains(callback.URL, "/receipts/") {
		function = functionReceipt
	}
	w.invoke(function, payload, func(r result) {
		response, _ := w.responseOf(function, r)
		status := response.Status
		w.checker.callback(callback, status)
		if w.HappensNow("response to the operator lost", w.Rates.LostResponse) {
			w.Count("response to the operator lost")
			status = 0
		}
		o.Report(time.Now(), callback, status)
		w.scheduleOperator(o)
	})
}
