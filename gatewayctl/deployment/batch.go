package deployment

import (
	"context"
	"errors"
	"slices"
	"strings"

	"mobilegateway/shared/circuit"
	circuitdynamo "mobilegateway/shared/circuit/dynamo"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
)

// batchReader reads many items of a table.
type batchReader struct {
	client dynamoitem.BatchGetter
	table  string
}

// maxReads bounds the calls for a batch, while the table leaves some of its items unread.
const maxReads = 5

// read returns the items that exist, in no order, by one call for dynamoitem.MaxBatch different keys.
func (r batchReader) read(ctx context.Context, keys []string) (items []dynamoitem.Item, calls int, err error) {
	for batch := range slices.Chunk(keys, dynamoitem.MaxBatch) {
		var left []dynamoitem.Item
		for _, key := range batch {
			left = append(left, dynamoitem.Key(key))
		}
		for reads := 0; len(left) > 0; reads++ {
			if reads == maxReads {
				return nil, calls, errors.New("the table " + r.table + " throttles reads: run the command again later")
			}
			calls++
			var found []dynamoitem.Item
			if found, left, err = dynamoitem.GetBatch(ctx, r.client, r.table, left); err != nil {
				return nil, calls, dynamoitem.DescribeError("read from the table "+r.table, err)
			}
			items = append(items, found...)
		}
	}
	return items, calls, nil
}

// profileReader is the ProfileReader of a table.
type profileReader struct{ batchReader }

// Profiles implements ProfileReader.
func (r profileReader) Profiles(ctx context.Context, ids []string) (
	profiles []*merchant.Profile, calls int, err error,
) {
	var keys []string
	for _, id := range ids {
		keys = append(keys, merchantdynamo.ProfileKey(id))
	}
	items, calls, err := r.read(ctx, keys)
	for _, item := range items {
		id := strings.TrimPrefix(dynamoitem.ReadText(item, dynamoitem.KeyAttribute), merchantdynamo.ProfileKey(""))
		profile, err := merchantdynamo.DecodeProfile(item, id)
		if err != nil {
			return nil, calls, err
		}
		profiles = append(profiles, profile)
	}
	return profiles, calls, err
}

// circuitReader is the CircuitReader of a table.
type circuitReader struct{ batchReader }

// Forms implements CircuitReader.
func (r circuitReader) Forms(ctx context.Context, keys []circuit.Key) (map[circuit.Key]string, error) {
	var wanted []string
	for _, key := range keys {
		wanted = append(wanted, circuitdynamo.ItemKey(key.Account))
	}
	slices.Sort(wanted)
	items, _, err := r.read(ctx, slices.Compact(wanted)) // the circuits of an account are one item
	forms := map[circuit.Key]string{}
	for _, item := range items {
		for _, key := range keys {
			if dynamoitem.ReadText(item, dynamoitem.KeyAttribute) == circuitdynamo.ItemKey(key.Account) {
				forms[key] = dynamoitem.ReadText(item, key.Operation)
			}
		}
	}
	return forms, err
}
