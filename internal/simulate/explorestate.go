package simulate

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/internal/simulate/tables"
	"mobilegateway/internal/simulate/tape"
)

// stateHash is a hash of everything that decides how the history can continue, except the faults that are left.
func (x *explorer) stateHash() uint64 {
	h := newHash()
	h.add(x.outsideHash())
	for _, a := range x.actors {
		status := uint64(0)
		switch {
		case a.ended:
			status = 1
		case a.started:
			status = 2
		}
		h.add(status)
		if a.stalled && !a.over() {
			h.add(3)
			if a.mustStall() {
				h.add(4)
			}
		}
		if !a.over() {
			h.add(a.seen.sum)
		}
	}
	h.add(uint64(x.jumps))         //nolint:gosec // small
	h.add(uint64(x.moreCallbacks)) //nolint:gosec // small
	if x.lateEffect {
		h.add(5)
	}
	var late uint64 // of a set
	for _, write := range x.late {
		late += tape.Mix(write.id)
	}
	h.add(late)
	return h.sum
}

// outsideHash is a hash of everything outside the functions: tables, operator, servers, stream, clients and the time.
func (x *explorer) outsideHash() uint64 {
	w := x.world
	h := newHash()
	h.add(uint64(time.Now().UnixNano()))
	h.add(w.database.Hash())
	h.add(w.servers[x.order.shop.host].Hash())
	if x.operator != nil {
		h.add(x.operator.Hash())
	}
	for _, callback := range x.callbacks {
		h.addText(callback.Key + callback.Status + string(callback.Content))
	}
	for _, record := range x.records {
		h.add(hashItem(record.New()))
	}
	for _, r := range x.order.responses {
		if isKnown(r) {
			h.add(uint64(r.Status)) //nolint:gosec // positive
			h.addText(r.Body)
		}
	}
	return h.sum
}

// hash is an ordered hash of numbers and texts.
type hash struct{ sum uint64 }

func newHash() *hash { return &hash{14695981039346656037} }

func (h *hash) add(value uint64) {
	h.sum = (h.sum ^ value ^ value>>31) * 0x9e3779b97f4a7c15
	h.sum ^= h.sum >> 29
}

func (h *hash) addText(text string) { h.add(hashBytes([]byte(text))) }

// hashBytes is FNV-1a.
func hashBytes(text []byte) uint64 {
	sum := uint64(14695981039346656037)
	for _, b := range text {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return sum
}

// hashItem hashes an item in any order of its attributes.
func hashItem(item map[string]types.AttributeValue) uint64 {
	var sum uint64
	for name, value := range item {
		h := newHash()
		h.addText(name)
		hashValue(h, value)
		sum += h.sum
	}
	return sum
}

func hashValue(h *hash, value types.AttributeValue) {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		h.addText(v.Value)
	case *types.AttributeValueMemberN:
		h.addText(v.Value)
	case *types.AttributeValueMemberB:
		h.add(hashBytes(v.Value))
	case *types.AttributeValueMemberBOOL:
		if v.Value {
			h.add(1)
		}
	case *types.AttributeValueMemberL:
		for _, member := range v.Value {
			hashValue(h, member)
		}
	case *types.AttributeValueMemberM:
		h.add(hashItem(v.Value))
	}
}

// conditionItems hashes the items that a failed condition returned.
func conditionItems(err error) uint64 {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return hashItem(failed.Item)
	}
	var cancelled *types.TransactionCanceledException
	var sum uint64
	if errors.As(err, &cancelled) {
		for _, reason := range cancelled.CancellationReasons {
			sum = sum*31 + hashItem(reason.Item)
		}
	}
	return sum
}

type options = func(*dynamodb.Options)

// seeingClient notes what an instance sees of the tables, and offers a crash after each write.
type seeingClient struct {
	*tables.Client
	x *explorer
	i *exploredInstance
}

// call runs a call with a fate, and notes its result. repeat makes the same call in another instance.
func (c seeingClient) call(
	ctx context.Context, writes string, repeat repeatCall, run func(context.Context) (uint64, error),
) {
	c.x.record(ctx, c.i, repeat)
	made := &exploredCall{}
	digest, err := run(context.WithValue(ctx, exploredCallKey{}, made))
	c.i.seen.add(c.i.sightOf(ctx, made.name), uint64(time.Now().UnixNano()), digest, errorDigest(err))
	if writes != "" && err == nil {
		c.x.crashAfter(c.i, writes)
	}
	c.x.goOn(c.i)
}

// PutItem implements the client's operation.
func (c seeingClient) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, _ ...options,
) (out *dynamodb.PutItemOutput, err error) {
	repeat := func(ctx context.Context, i *exploredInstance) { _, _ = i.client.PutItem(ctx, in) }
	c.call(ctx, "PutItem "+*in.TableName, repeat, func(ctx context.Context) (uint64, error) {
		out, err = c.Client.PutItem(ctx, in)
		return 0, err
	})
	return out, err
}

// GetItem implements the client's operation.
func (c seeingClient) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, _ ...options,
) (out *dynamodb.GetItemOutput, err error) {
	repeat := func(ctx context.Context, i *exploredInstance) { _, _ = i.client.GetItem(ctx, in) }
	c.call(ctx, "", repeat, func(ctx context.Context) (uint64, error) {
		if out, err = c.Client.GetItem(ctx, in); err != nil {
			return 0, err
		}
		return hashItem(out.Item), nil
	})
	return out, err
}

// UpdateItem implements the client's operation.
func (c seeingClient) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, _ ...options,
) (out *dynamodb.UpdateItemOutput, err error) {
	repeat := func(ctx context.Context, i *exploredInstance) { _, _ = i.client.UpdateItem(ctx, in) }
	c.call(ctx, "UpdateItem "+*in.TableName, repeat, func(ctx context.Context) (uint64, error) {
		if out, err = c.Client.UpdateItem(ctx, in); err != nil {
			return 0, err
		}
		return hashItem(out.Attributes), nil
	})
	return out, err
}

// TransactWriteItems implements the client's operation.
func (c seeingClient) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...options,
) (out *dynamodb.TransactWriteItemsOutput, err error) {
	repeat := func(ctx context.Context, i *exploredInstance) { _, _ = i.client.TransactWriteItems(ctx, in) }
	c.call(ctx, "TransactWriteItems", repeat, func(ctx context.Context) (uint64, error) {
		out, err = c.Client.TransactWriteItems(ctx, in)
		return 0, err
	})
	return out, err
}

// Query implements the client's operation. The actors see an index as it is when they start: a key that is listed too
// late or too early is read again before anything is done to it.
func (c seeingClient) Query(
	ctx context.Context, in *dynamodb.QueryInput, _ ...options,
) (out *dynamodb.QueryOutput, err error) {
	repeat := func(ctx context.Context, i *exploredInstance) { _, _ = i.client.Query(ctx, in) }
	c.call(ctx, "", repeat, func(ctx context.Context) (uint64, error) {
		if out, err = c.Client.Query(ctx, in); err != nil {
			return 0, err
		}
		var digest uint64
		for _, item := range out.Items {
			digest = digest*31 + hashItem(item)
		}
		return digest, nil
	})
	return out, err
}
