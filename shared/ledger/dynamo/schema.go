package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
)

// Names of the indexes. Both contain keys only.
const (
	IndexDue = "due" // by due_shard and due_at; sparse: the entries that the sweep must process
	IndexDay = "day" // by merchant_day and day_sort: a merchant's transactions of a UTC day
)

// TimeToLive is the attribute with an item's time to live, in seconds since 1970.
const TimeToLive = attributeExpireAt

// WakeAttribute and WakeValue are the attribute and the value that the relay's stream filter requires in a new image.
const (
	WakeAttribute = attributeWakesRelay
	WakeValue     = "1"
)

// Schema is the table as the deployment's template declares it, for tests that create one. It does not set the time to
// live, which needs a request of its own.
func Schema(table string) *dynamodb.CreateTableInput {
	attribute := func(name string, of types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: of}
	}
	key := func(name string, of types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(name), KeyType: of}
	}
	index := func(name, hash, sort string) types.GlobalSecondaryIndex {
		return types.GlobalSecondaryIndex{
			IndexName:  aws.String(name),
			KeySchema:  []types.KeySchemaElement{key(hash, types.KeyTypeHash), key(sort, types.KeyTypeRange)},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}
	}
	return &dynamodb.CreateTableInput{
		TableName:   aws.String(table),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			attribute(dynamoitem.KeyAttribute, types.ScalarAttributeTypeS),
			attribute(attributeMerchantDay, types.ScalarAttributeTypeS),
			attribute(attributeDaySort, types.ScalarAttributeTypeS),
			attribute(attributeDueShard, types.ScalarAttributeTypeS),
			attribute(attributeDueAt, types.ScalarAttributeTypeN),
		},
		KeySchema: []types.KeySchemaElement{key(dynamoitem.KeyAttribute, types.KeyTypeHash)},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			index(IndexDay, attributeMerchantDay, attributeDaySort),
			index(IndexDue, attributeDueShard, attributeDueAt),
		},
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage,
		},
	}
}
