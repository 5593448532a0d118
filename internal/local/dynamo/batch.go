package dynamo

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// retryPause is the wait before a failed batch is tried again; it doubles up to maxRetryPause.
const (
	retryPause    = 100 * time.Millisecond
	maxRetryPause = 2 * time.Second
)

// grain is how exactly an engine says when a record was made: DynamoDB to the second, DynamoDB Local to the minute that had
// begun.
const grain = time.Minute

// deliverBatch hands a batch on until all its records are taken, too old or out of retries. Its error is ctx's alone.
func (p *Pump) deliverBatch(ctx context.Context, batch []*record) error {
	pause := retryPause
	for tries := 0; ; tries++ {
		batch = p.young(batch)
		if len(batch) == 0 {
			return nil
		}
		left, whole := p.attempt(ctx, batch)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(left) == 0 {
			return nil
		}
		if whole && p.Stream.BisectOnError && len(left) > 1 {
			middle := len(left) / 2
			if err := p.deliverBatch(ctx, left[:middle]); err != nil {
				return err
			}
			return p.deliverBatch(ctx, left[middle:])
		}
		if p.Stream.MaxRetryAttempts >= 0 && tries >= p.Stream.MaxRetryAttempts {
			p.Logf("stream of %s: %d records given up after %d attempts", p.Table, len(left), tries+1)
			return nil
		}
		batch = left
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, maxRetryPause)
	}
}

// young leaves out the records that are surely older than the template allows.
func (p *Pump) young(batch []*record) []*record {
	if p.Stream.MaxRecordAge == 0 {
		return batch
	}
	oldest := p.Now().Add(-p.Stream.MaxRecordAge - grain)
	left := slices.DeleteFunc(slices.Clone(batch), func(r *record) bool {
		return !r.created.IsZero() && r.created.Before(oldest)
	})
	if old := len(batch) - len(left); old > 0 {
		p.Logf("stream of %s: %d records left out, which are older than %s", p.Table, old, p.Stream.MaxRecordAge)
	}
	return left
}

// attempt invokes the function once: the records that are still to be taken, and whether the batch failed as a whole.
func (p *Pump) attempt(ctx context.Context, batch []*record) (left []*record, whole bool) {
	result, functionError, err := p.Function.Invoke(ctx, p.event(batch))
	if err != nil || functionError {
		return batch, true
	}
	if !p.Stream.ReportsItemFailures {
		return nil, false
	}
	var answer struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if len(result) == 0 || string(result) == "null" {
		return nil, false
	}
	if err := json.Unmarshal(result, &answer); err != nil {
		return batch, true
	}
	first := len(batch)
	for _, failure := range answer.BatchItemFailures {
		i := slices.IndexFunc(batch, func(r *record) bool { return r.sequence == failure.ItemIdentifier })
		if i < 0 {
			return batch, true // an unknown or empty identifier fails the whole batch, as Lambda has it
		}
		first = min(first, i)
	}
	return batch[first:], false
}

// event is the function's event of a batch.
func (p *Pump) event(batch []*record) []byte {
	var records []map[string]any
	for _, r := range batch {
		raw := maps.Clone(r.raw)
		raw["eventSourceARN"] = p.arn
		records = append(records, raw)
	}
	document, _ := json.Marshal(map[string]any{"Records": records}) // it was JSON before
	return document
}
