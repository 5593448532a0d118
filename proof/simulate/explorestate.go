package simulate

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/proof/simulate/tape"
	model "mobilegateway/world/dynamodb"
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
		if a.over() {
			continue
		}
		if a.stalled {
			h.add(3)
		}
		if a.mustStall() {
			h.add(4)
		}
		h.add(a.seen.sum)
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
		h.add(model.HashItem(record.New()))
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

// conditionItems hashes the items that a failed condition returned.
func conditionItems(err error) uint64 {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return model.HashItem(failed.Item)
	}
	var cancelled *types.TransactionCanceledException
	var sum uint64
	if errors.As(err, &cancelled) {
		for _, reason := range cancelled.CancellationReasons {
			sum = sum*31 + model.HashItem(reason.Item)
		}
	}
	return sum
}

type options = func(*dynamodb.Options)

// seeingClient notes what an instance sees of the tables, and offers a crash after each write.
type seeingClient struct {
	*model.Client
	x *explorer
	i *exploredInstance
}

// see makes a call with a fate, and notes its result. writes names a call with an effect. again makes it in another
// instance.
func see[I, O any](
	ctx context.Context, c seeingClient, in *I, writes string,
	call func(*model.Client, context.Context, *I, ...options) (*O, error),
	again func(seeingClient, context.Context, *I, ...options) (*O, error),
) (*O, error) {
	c.x.record(ctx, c.i, func(ctx context.Context, i *exploredInstance) { _, _ = again(i.client, ctx, in) })
	made := &exploredCall{}
	out, err := call(c.Client, context.WithValue(ctx, exploredCallKey{}, made), in)
	digest := uint64(0)
	if err == nil {
		digest = outputDigest(out)
	}
	c.i.seen.add(c.i.sightOf(ctx, made.name), uint64(time.Now().UnixNano()), digest, errorDigest(err))
	if writes != "" && err == nil {
		c.x.crashAfter(c.i, writes)
	}
	c.x.goOn(c.i)
	return out, err
}

// outputDigest hashes the items in the output of a call.
func outputDigest(out any) (digest uint64) {
	switch out := out.(type) {
	case *dynamodb.GetItemOutput:
		return model.HashItem(out.Item)
	case *dynamodb.UpdateItemOutput:
		return model.HashItem(out.Attributes)
	case *dynamodb.QueryOutput:
		for _, item := range out.Items {
			digest = digest*31 + model.HashItem(item)
		}
	}
	return digest
}

// PutItem implements the client's operation.
func (c seeingClient) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, _ ...options,
) (*dynamodb.PutItemOutput, error) {
	return see(ctx, c, in, "PutItem "+*in.TableName, (*model.Client).PutItem, seeingClient.PutItem)
}

// GetItem implements the client's operation.
func (c seeingClient) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, _ ...options,
) (*dynamodb.GetItemOutput, error) {
	return see(ctx, c, in, "", (*model.Client).GetItem, seeingClient.GetItem)
}

// UpdateItem implements the client's operation.
func (c seeingClient) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, _ ...options,
) (*dynamodb.UpdateItemOutput, error) {
	return see(ctx, c, in, "UpdateItem "+*in.TableName, (*model.Client).UpdateItem, seeingClient.UpdateItem)
}

// TransactWriteItems implements the client's operation.
func (c seeingClient) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...options,
) (*dynamodb.TransactWriteItemsOutput, error) {
	return see(ctx, c, in, "TransactWriteItems", (*model.Client).TransactWriteItems, seeingClient.TransactWriteItems)
}

// Query implements the client's operation. The actors see an index as it is when they start: a key that is listed too
// late or too early is read again before anything is done to it.
func (c seeingClient) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...options) (*dynamodb.QueryOutput, error) {
	return see(ctx, c, in, "", (*model.Client).Query, seeingClient.Query)
}
