package deployment

import (
	"context"
	"errors"
	"slices"
	"strings"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
)

// profileReader is the ProfileReader of a table.
type profileReader struct {
	client dynamoitem.BatchGetter
	table  string
}

// maxProfileReads bounds the calls for a batch of profiles, while the table leaves some of them unread.
const maxProfileReads = 5

// Profiles implements ProfileReader with one call for dynamoitem.MaxBatch profiles.
func (r profileReader) Profiles(ctx context.Context, ids []string) (
	profiles []*merchant.Profile, calls int, err error,
) {
	for batch := range slices.Chunk(ids, dynamoitem.MaxBatch) {
		var keys []dynamoitem.Item
		for _, id := range batch {
			keys = append(keys, dynamoitem.Key(merchantdynamo.ProfileKey(id)))
		}
		for reads := 0; len(keys) > 0; reads++ {
			if reads == maxProfileReads {
				return nil, calls, errors.New("the merchant table throttles reads: run the command again later")
			}
			calls++
			var found []dynamoitem.Item
			if found, keys, err = dynamoitem.GetBatch(ctx, r.client, r.table, keys); err != nil {
				return nil, calls, dynamoitem.DescribeError("read from the merchant table", err)
			}
			for _, item := range found {
				key := dynamoitem.ReadText(item, dynamoitem.KeyAttribute)
				id := strings.TrimPrefix(key, merchantdynamo.ProfileKey(""))
				profile, err := merchantdynamo.DecodeProfile(item, id)
				if err != nil {
					return nil, calls, err
				}
				profiles = append(profiles, profile)
			}
		}
	}
	return profiles, calls, nil
}
