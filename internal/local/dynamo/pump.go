package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"mobilegateway/internal/local/file"
	"mobilegateway/internal/template"
)

// The pump's pace: how long it waits where a stream has nothing new, and after a call that failed.
const (
	idlePause  = 40 * time.Millisecond
	faultPause = time.Second
)

// Invoker runs a function; *runtimeapi.Function is one.
type Invoker interface {
	Invoke(ctx context.Context, payload []byte) (result []byte, functionError bool, err error)
}

// Pump reads a table's stream and invokes a function with its records, as Lambda's event source mapping does: filtered,
// in batches, in order within an item, with as many batches of a shard at once as the template allows, and with partial
// failures retried from the first failed record.
type Pump struct {
	Client     *Client
	Table      string // the table's name
	Stream     template.Stream
	Function   Invoker
	Checkpoint string // file that keeps how far each shard was read
	Now        func() time.Time
	Logf       func(format string, args ...any)

	arn   string
	state checkpoint
	taken map[string]string // sequence number of the last record given to a lane, by shard
	lanes *lanes
}

// checkpoint is how far the stream was read. A shard that is finished stays listed, so that it is not read again.
type checkpoint struct {
	Stream string            `json:"stream"`
	Shards map[string]string `json:"shards"` // sequence number of the last record taken, by shard
}

// record is one record of a stream: kept as it came, for the function's event.
type record struct {
	raw      map[string]any
	key      string
	sequence string
	created  time.Time
	done     bool // handed on, or of no interest; guarded by lanes.mutex
}

// Run reads until ctx ends. Faults of the engine are logged, and it goes on.
func (p *Pump) Run(ctx context.Context) {
	p.lanes = newLanes(p)
	defer p.lanes.run(ctx)()
	for ctx.Err() == nil {
		busy, err := p.round(ctx)
		pause := idlePause
		if err != nil && ctx.Err() == nil {
			p.Logf("stream of %s: %v", p.Table, err)
			pause = faultPause
		}
		if busy && err == nil {
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// round reads each shard once; busy tells that there was something.
func (p *Pump) round(ctx context.Context) (busy bool, err error) {
	if p.arn == "" {
		if err := p.begin(ctx); err != nil {
			return false, err
		}
	}
	shards, err := p.shards(ctx)
	if err != nil {
		return false, err
	}
	for _, shard := range shards {
		n, err := p.readShard(ctx, shard)
		if err != nil {
			return false, err
		}
		busy = busy || n > 0
	}
	return busy, nil
}

// begin finds the stream and the checkpoint that belongs to it.
func (p *Pump) begin(ctx context.Context) error {
	table, err := p.Client.describe(ctx, p.Table)
	if err != nil {
		return err
	}
	if table.Table.LatestStreamArn == "" {
		return errors.New("the table has no stream")
	}
	text, err := os.ReadFile(p.Checkpoint)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if err := json.Unmarshal(text, &p.state); err != nil {
			return fmt.Errorf("%s is damaged: %w", p.Checkpoint, err)
		}
	}
	if p.state.Stream != table.Table.LatestStreamArn {
		p.state = checkpoint{Stream: table.Table.LatestStreamArn, Shards: map[string]string{}}
	}
	p.arn = table.Table.LatestStreamArn
	p.taken = maps.Clone(p.state.Shards)
	return nil
}

// shards lists the stream's shards, parents first as the service lists them.
func (p *Pump) shards(ctx context.Context) ([]string, error) {
	var list []string
	in := map[string]any{"StreamArn": p.arn}
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
			return nil, err
		}
		for _, shard := range out.StreamDescription.Shards {
			list = append(list, shard.ShardID)
		}
		if out.StreamDescription.LastEvaluatedShardID == "" {
			return list, nil
		}
		in["ExclusiveStartShardId"] = out.StreamDescription.LastEvaluatedShardID
	}
}

// readShard reads what is new in a shard, page by page, and delivers it.
func (p *Pump) readShard(ctx context.Context, shard string) (delivered int, err error) {
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
			return delivered, err
		}
		if len(page.Records) == 0 {
			return delivered, nil
		}
		if err := p.take(ctx, shard, page.Records); err != nil {
			return delivered, err
		}
		delivered += len(page.Records)
		iterator = page.NextShardIterator
	}
	return delivered, nil
}

// iterator begins after the last record taken, or at the shard's first.
func (p *Pump) iterator(ctx context.Context, shard string) (string, error) {
	in := map[string]any{"StreamArn": p.arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
	if sequence := p.taken[shard]; sequence != "" {
		in["ShardIteratorType"], in["SequenceNumber"] = "AFTER_SEQUENCE_NUMBER", sequence
	}
	var out struct{ ShardIterator string }
	err := p.Client.call(ctx, streamService, "GetShardIterator", in, &out)
	var refused *Error
	if errors.As(err, &refused) && refused.Kind == "TrimmedDataAccessException" {
		delete(p.taken, shard) // what stood between is gone: begin at what is left
		in["ShardIteratorType"] = "TRIM_HORIZON"
		delete(in, "SequenceNumber")
		err = p.Client.call(ctx, streamService, "GetShardIterator", in, &out)
	}
	return out.ShardIterator, err
}

// take gives the records of a page to the lanes, in their order.
func (p *Pump) take(ctx context.Context, shard string, page []map[string]any) error {
	var records, passing []*record
	for _, raw := range page {
		r := newRecord(raw)
		records = append(records, r)
		if p.passes(raw) {
			passing = append(passing, r)
		}
	}
	p.taken[shard] = records[len(records)-1].sequence
	return p.lanes.take(ctx, shard, records, passing)
}

// newRecord takes what the pump itself needs out of a record.
func newRecord(raw map[string]any) *record {
	r := &record{raw: raw}
	change, _ := raw["dynamodb"].(map[string]any)
	keys, _ := json.Marshal(change["Keys"]) // it was JSON before
	r.key = string(keys)
	r.sequence, _ = change["SequenceNumber"].(string)
	if created, ok := change["ApproximateCreationDateTime"].(float64); ok {
		r.created = time.Unix(int64(created), 0)
	}
	return r
}

// passes tells whether a record passes one of the filters.
func (p *Pump) passes(raw map[string]any) bool {
	for _, filter := range p.Stream.Filters {
		if filter.Matches(raw) {
			return true
		}
	}
	return len(p.Stream.Filters) == 0
}

// save keeps the checkpoint.
func (p *Pump) save() error {
	text, err := json.Marshal(p.state)
	if err != nil {
		return err
	}
	return file.Replace(p.Checkpoint, text)
}
