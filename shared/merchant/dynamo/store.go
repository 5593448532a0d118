// Package dynamo keeps merchant profiles in a DynamoDB table.
//
// One profile is one item, "merchant#<id>": the profile as a JSON document, and beside it, for conditions and for people
// who look at the table, its name, status and version. A second small item, "name#<name in lower case>", reserves the
// name for ever. The invariant: a profile exists only together with its name's reservation.
package dynamo

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/merchant"
)

// The table's attributes. The partition key alone is the primary key.
const (
	attributeKey      = "pk"
	attributeDocument = "profile"
	attributeName     = "name"
	attributeStatus   = "status"
	attributeVersion  = "version"
	attributeID       = "id" // of a name's reservation: whose it is

	profilePrefix = "merchant#"
	namePrefix    = "name#"
)

// Getter is the part of the DynamoDB client that reading profiles needs.
type Getter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Store reads profiles, for requests. It is a type of its own so that a function links no more than it calls.
type Store struct {
	client Getter
	table  string
}

var _ merchant.Store = (*Store)(nil)

// New makes a Store over a table (MERCHANT_TABLE).
func New(client Getter, table string) *Store { return &Store{client: client, table: table} }

// Profile implements merchant.Store: one strongly consistent read.
func (s *Store) Profile(ctx context.Context, id string) (*merchant.Profile, error) {
	item, err := s.get(ctx, profilePrefix+id)
	if err != nil || item == nil {
		return nil, err
	}
	profile, err := merchant.Decode([]byte(stringAttribute(item, attributeDocument)))
	if err != nil {
		return nil, err
	}
	if profile.ID != id {
		return nil, fmt.Errorf("the item of merchant %s holds the profile of another", id)
	}
	return profile, nil
}

// get reads one item; nil when there is none.
func (s *Store) get(ctx context.Context, key string) (map[string]types.AttributeValue, error) {
	output, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(s.table),
		Key:            itemKey(key),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, fmt.Errorf("read from the merchant table: %w", err)
	}
	if len(output.Item) == 0 {
		return nil, nil
	}
	return output.Item, nil
}

func itemKey(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attributeKey: stringValue(key)}
}

func stringValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func numberValue(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// stringAttribute returns a string attribute, "" where there is none.
func stringAttribute(item map[string]types.AttributeValue, name string) string {
	value, _ := item[name].(*types.AttributeValueMemberS)
	if value == nil {
		return ""
	}
	return value.Value
}
