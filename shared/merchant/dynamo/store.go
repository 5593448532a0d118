// Package dynamo keeps merchant profiles in a DynamoDB table.
//
// A profile is one item, "merchant#<id>": a JSON document, and its name, status and version for conditions and for
// people who read the table. A second small item, "name#<name in lower case>", reserves the name permanently. The
// invariant: a profile exists only together with the reservation of its name.
package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/merchant"
)

// The table's attributes besides the key.
const (
	attributeDocument = "profile"
	attributeName     = "name"
	attributeStatus   = "status"
	attributeVersion  = "version"
	attributeID       = "id" // in a name's reservation: the owner

	profilePrefix = "merchant#"
	namePrefix    = "name#"
)

// Getter is the part of the DynamoDB client that reading profiles needs.
type Getter interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Store reads profiles, for requests. It is a separate type so that a function links only the calls that it needs.
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
	if err != nil || len(item) == 0 {
		return nil, err
	}
	profile, err := merchant.Decode([]byte(dynamoitem.ReadText(item, attributeDocument)))
	if err != nil {
		return nil, err
	}
	if profile.ID != id {
		return nil, fmt.Errorf("the item of merchant %s contains the profile of another merchant", id)
	}
	return profile, nil
}

// get reads one item; nil if there is none.
func (s *Store) get(ctx context.Context, key string) (dynamoitem.Item, error) {
	output, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(s.table),
		Key:            dynamoitem.Key(key),
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, fmt.Errorf("read from the merchant table: %w", err)
	}
	return output.Item, nil
}
