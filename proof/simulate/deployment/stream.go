package deployment

import (
	"time"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

const (
	maxBatch       = 25
	maxRecordAge   = time.Minute // of a record that the stream delivers again
	maxBatchTries  = 4
	streamLatency  = 200 * time.Millisecond
	streamShards   = 4
	streamLateness = 70 * time.Second
)

// Stream delivers the records of the ledger's table to the relay, one batch of a shard at a time.
type Stream struct {
	*Deployment
	Off outside.Window

	sequence int64 // of the last change that was seen
	pending  [streamShards][]*model.Change
	busy     [streamShards]bool
}

// Follow follows the changes since the last step, and reports whether there are any. wake gets those that wake the
// relay.
func (s *Stream) Follow(wake func(*model.Change)) bool {
	changes := s.Database.Changes(s.sequence)
	for _, change := range changes {
		s.sequence = change.Sequence
		followed := s.Entries.Follow(change)
		followed.Made = s.made
		s.Observer.Changed(followed, s.writer)
		if _, wakes := change.New()[ledgerdynamo.WakeAttribute]; wakes && change.Table == fixture.LedgerTable {
			wake(change)
		}
	}
	s.writer, s.made = nil, ledger.NoTransition
	s.Observer.Followed(len(changes) > 0)
	return len(changes) > 0
}

// Queue queues a record for the relay.
func (s *Stream) Queue(record *model.Change) {
	s.pending[record.Shard] = append(s.pending[record.Shard], record)
	s.scheduleBatch(record.Shard)
}

// scheduleBatch schedules the next batch of a shard.
func (s *Stream) scheduleBatch(shard int) {
	if s.busy[shard] || len(s.pending[shard]) == 0 {
		return
	}
	s.busy[shard] = true
	wait := streamLatency
	if s.HappensNow("late stream", s.Rates.LateStream) {
		wait = tape.Draw(s.Tape, "lateness of the stream", 5*time.Second, 35*time.Second, streamLateness, 2*time.Minute,
			24*time.Hour)
		s.Logf("stream: shard %d is %s late", shard, wait)
		s.Count("stream: late record")
	}
	if now := time.Now(); s.Off.Contains(now) {
		wait = s.Off.To.Sub(now)
	}
	s.Kernel.At(time.Now().Add(wait), "stream", func() {
		count := min(len(s.pending[shard]), maxBatch)
		batch := s.pending[shard][:count:count]
		s.pending[shard] = s.pending[shard][count:]
		s.deliver(shard, batch, 1)
	})
}

// deliver invokes the relay with a batch, and again after a failure, as Lambda does.
func (s *Stream) deliver(shard int, batch []*model.Change, try int) {
	s.Counts.Batches++
	s.Invoke(Relay, model.LambdaEvent(batch...), func(r Result) {
		failed := r.Lost || r.Err != nil
		old := time.Since(batch[0].Time) > maxRecordAge
		again := s.HappensNow("batch delivered twice", s.Rates.DoubleStream)
		if again {
			s.Count("stream: batch twice")
		}
		if failed && !old && try < maxBatchTries || again {
			s.Kernel.At(time.Now().Add(time.Second), "stream retry", func() { s.deliver(shard, batch, try+1) })
			return
		}
		s.busy[shard] = false
		s.scheduleBatch(shard)
	})
}
