package dynamo

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"mobilegateway/shared/pause"
)

// retryPause is the wait before the first retry of a failed batch. It doubles up to maxRetryPause.
const (
	retryPause    = 100 * time.Millisecond
	maxRetryPause = 2 * time.Second
)

// creationPrecision is the error of a record's creation time. DynamoDB rounds down to the second, DynamoDB Local to the
// minute.
const creationPrecision = time.Minute

// deliverBatch invokes the function until each record of a batch is processed, too old or out of retries. It returns an
// error only when ctx has ended.
func (p *Pump) deliverBatch(ctx context.Context, batch []*record) error {
	wait := retryPause
	for retries := 0; ; retries++ {
		batch = p.dropExpired(batch)
		if len(batch) == 0 {
			return nil
		}
		left, batchFailed := p.invoke(ctx, batch)
		if ctx.Err() != nil || len(left) == 0 {
			return ctx.Err()
		}
		if batchFailed && p.Stream.BisectOnError && len(left) > 1 {
			middle := len(left) / 2
			if err := p.deliverBatch(ctx, left[:middle]); err != nil {
				return err
			}
			return p.deliverBatch(ctx, left[middle:])
		}
		if p.Stream.MaxRetryAttempts >= 0 && retries >= p.Stream.MaxRetryAttempts {
			p.Logf("stream of %s: %d records dropped after %d attempts; see the function's log",
				p.Table, len(left), retries+1)
			return nil
		}
		batch = left
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, maxRetryPause)
	}
}

// dropExpired removes the records that are certainly older than the template allows.
func (p *Pump) dropExpired(batch []*record) []*record {
	if p.Stream.MaxRecordAge == 0 {
		return batch
	}
	oldest := p.Now().Add(-p.Stream.MaxRecordAge - creationPrecision)
	left := slices.DeleteFunc(slices.Clone(batch), func(r *record) bool {
		return !r.created.IsZero() && r.created.Before(oldest)
	})
	if old := len(batch) - len(left); old > 0 {
		p.Logf("stream of %s: %d records dropped: older than %s", p.Table, old, p.Stream.MaxRecordAge)
	}
	return left
}

// invoke invokes the function once. It returns the records to retry, and whether the batch failed as a whole.
func (p *Pump) invoke(ctx context.Context, batch []*record) (left []*record, batchFailed bool) {
	result, functionError, err := p.Function.Invoke(ctx, p.encodeEvent(batch))
	if err != nil || functionError {
		return batch, true
	}
	if !p.Stream.ReportsItemFailures || len(result) == 0 {
		return nil, false
	}
	var response struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(result, &response); err != nil {
		return batch, true
	}
	first := len(batch)
	for _, failure := range response.BatchItemFailures {
		i := slices.IndexFunc(batch, func(r *record) bool { return r.sequence == failure.ItemIdentifier })
		if i < 0 {
			return batch, true // as Lambda does: an unknown or empty identifier fails the whole batch
		}
		first = min(first, i)
	}
	return batch[first:], false
}

func (p *Pump) encodeEvent(batch []*record) []byte {
	var records []map[string]any
	for _, r := range batch {
		raw := maps.Clone(r.raw)
		raw["eventSourceARN"] = p.arn
		records = append(records, raw)
	}
	document, _ := json.Marshal(map[string]any{"Records": records}) // the records came as JSON
	return document
}
