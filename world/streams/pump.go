package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"mobilegateway/internal/file"
	"mobilegateway/shared/pause"
	"mobilegateway/world/lambda"
	"mobilegateway/world/template"
)

// The pauses of the pump, and how long it uses one list of shards.
const (
	idlePause     = 40 * time.Millisecond // after a round without records
	faultPause    = time.Second           // after a failed call
	shardLifetime = 10 * time.Second
)

// Pump reads a table's stream and invokes a function with its records, as Lambda's event source mapping does. It
// filters records, keeps the order within an item, delivers as many batches at once as the template allows, and retries
// a batch from its first failed record.
type Pump struct {
	Client     *Client
	Table      string // the table's name
	Stream     template.Stream
	Function   lambda.Invoker
	Checkpoint string // path of the file with the position in each shard
	Now        func() time.Time
	Logf       func(format string, args ...any)

	shards   []string          // as the stream listed them, parents first
	listed   time.Time         // when shards was read; the zero time once a shard has ended
	state    checkpoint        // its Stream is "" until the stream is found
	lastRead map[string]string // sequence number of the last record that is in a lane, by shard
	queues   []chan []*record  // of the lanes

	mutex   sync.Mutex
	pending map[string][]*record // by shard: read and not yet passed by the checkpoint, oldest first
}

// checkpoint is the position in a stream. A shard that has ended stays in it, so it is not read again.
type checkpoint struct {
	Stream string            `json:"stream"`
	Shards map[string]string `json:"shards"` // sequence number of the last record that is done, by shard
}

// record is a stream record. raw is what the service sent, for the function's event.
type record struct {
	raw      map[string]any
	key      string
	sequence string
	created  time.Time
	done     bool // processed, dropped or filtered out; guarded by Pump.mutex
}

// Run reads until ctx ends. It logs failed calls and continues.
func (p *Pump) Run(ctx context.Context) {
	var lanes sync.WaitGroup
	defer lanes.Wait()
	p.pending = map[string][]*record{}
	for range max(p.Stream.ParallelizationFactor, 1) {
		queue := make(chan []*record, laneLength)
		p.queues = append(p.queues, queue)
		lanes.Go(func() { p.deliver(ctx, queue) })
	}
	for ctx.Err() == nil {
		busy, err := p.readShards(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			p.Logf("stream of %s: %v", p.Table, err)
			_ = pause.For(ctx, faultPause) // the loop checks ctx
		case !busy:
			_ = pause.For(ctx, idlePause)
		}
	}
}

// readShards reads each shard once. busy reports whether there were records.
func (p *Pump) readShards(ctx context.Context) (busy bool, err error) {
	if p.state.Stream == "" {
		if err := p.findStream(ctx); err != nil {
			return false, err
		}
	}
	if err := p.listShards(ctx); err != nil {
		return false, err
	}
	for _, shard := range p.shards {
		n, err := p.readShard(ctx, shard)
		if err != nil {
			return false, err
		}
		busy = busy || n > 0
	}
	return busy, nil
}

func (p *Pump) findStream(ctx context.Context) error {
	table, err := p.Client.describe(ctx, p.Table)
	if err != nil {
		return err
	}
	if table.Table.LatestStreamArn == "" {
		return errors.New("the table has no stream")
	}
	var state checkpoint
	if err := file.ReadJSON(p.Checkpoint, &state); err != nil {
		return fmt.Errorf("read the checkpoint: %w; delete it to read the stream again", err)
	}
	if state.Stream != table.Table.LatestStreamArn {
		state = checkpoint{Stream: table.Table.LatestStreamArn, Shards: map[string]string{}}
	}
	p.state, p.lastRead = state, maps.Clone(state.Shards)
	return nil
}

// listShards reads the list of shards if the last one is too old or a shard has ended. It does not do so in each round,
// because an engine may read the whole stream for it.
func (p *Pump) listShards(ctx context.Context) error {
	now := p.Now()
	if now.Sub(p.listed) < shardLifetime {
		return nil
	}
	var list []string
	in := map[string]any{"StreamArn": p.state.Stream}
	for {
		var out struct {
			StreamDescription struct {
				Shards []struct {
					ShardID string `json:"ShardId"`
				}
				LastEvaluatedShardID string `json:"LastEvaluatedShardId"`
			}
		}
		if err := p.Client.call(ctx, streamService, "DescribeStream", in, &out); err != nil {
			return err
		}
		for _, shard := range out.StreamDescription.Shards {
			list = append(list, shard.ShardID)
		}
		if out.StreamDescription.LastEvaluatedShardID == "" {
			p.shards, p.listed = list, now
			return nil
		}
		in["ExclusiveStartShardId"] = out.StreamDescription.LastEvaluatedShardID
	}
}

// readShard puts the new records of a shard into the lanes, page by page.
func (p *Pump) readShard(ctx context.Context, shard string) (count int, err error) {
	iterator, err := p.iterator(ctx, shard)
	if err != nil {
		return 0, err
	}
	for iterator != "" {
		var page struct {
			Records           []map[string]any
			NextShardIterator string
		}
		err := p.Client.call(ctx, streamService, "GetRecords", map[string]any{"ShardIterator": iterator}, &page)
		if err != nil {
			return count, err
		}
		if page.NextShardIterator == "" {
			p.listed = time.Time{} // the shard has ended: its children are new
		}
		if len(page.Records) == 0 {
			return count, nil
		}
		if err := p.enqueue(ctx, shard, page.Records); err != nil {
			return count, err
		}
		count += len(page.Records)
		iterator = page.NextShardIterator
	}
	return count, nil
}

// iterator returns an iterator after the last record read, or at the start of the shard.
func (p *Pump) iterator(ctx context.Context, shard string) (string, error) {
	in := map[string]any{"StreamArn": p.state.Stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
	if sequence := p.lastRead[shard]; sequence != "" {
		in["ShardIteratorType"], in["SequenceNumber"] = "AFTER_SEQUENCE_NUMBER", sequence
	}
	var out struct{ ShardIterator string }
	err := p.Client.call(ctx, streamService, "GetShardIterator", in, &out)
	if isKind(err, "TrimmedDataAccessException") {
		delete(p.lastRead, shard) // the records after it are trimmed: start at the oldest one left
		in["ShardIteratorType"] = "TRIM_HORIZON"
		delete(in, "SequenceNumber")
		err = p.Client.call(ctx, streamService, "GetShardIterator", in, &out)
	}
	return out.ShardIterator, err
}

func newRecord(raw map[string]any) *record {
	r := &record{raw: raw}
	change, _ := raw["dynamodb"].(map[string]any)
	keys, _ := json.Marshal(change["Keys"]) // raw came as JSON
	r.key = string(keys)
	r.sequence, _ = change["SequenceNumber"].(string)
	if created, ok := change["ApproximateCreationDateTime"].(float64); ok {
		r.created = time.Unix(int64(created), 0)
	}
	return r
}
