// Package dynamo keeps merchant profiles in a DynamoDB table.
//
// A profile is one item, "merchant#<id>": a JSON document, and its name, status and version for conditions and for
// people who read the table. A second small item, "name#<name in lower case>", reserves the name permanently. The
// invariant: a profile exists only together with the reservation of its name.
package dynamo

import (
	"context"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/logsafe"
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

// Store reads profiles, for requests. It is a separate type so that a function links only the calls that it needs.
type Store struct {
	client dynamoitem.Getter
	table  string
}

// New makes a Store over a table (MERCHANT_TABLE).
func New(client dynamoitem.Getter, table string) *Store { return &Store{client: client, table: table} }

// Profile implements merchant.Store: one strongly consistent read.
func (s *Store) Profile(ctx context.Context, id string) (*merchant.Profile, error) {
	item, err := s.get(ctx, ProfileKey(id))
	if err != nil || len(item) == 0 {
		return nil, err
	}
	return DecodeProfile(item, id)
}

// ProfileKey is the primary key of a merchant's profile.
func ProfileKey(id string) string { return profilePrefix + id }

// DecodeProfile reads the item of a merchant's profile.
func DecodeProfile(item dynamoitem.Item, id string) (*merchant.Profile, error) {
	profile, err := merchant.Decode([]byte(dynamoitem.ReadText(item, attributeDocument)))
	if err != nil {
		return nil, err
	}
	if profile.ID != id {
		return nil, logsafe.Errorf("the item of merchant %s contains the profile of another merchant", id)
	}
	return profile, nil
}

// get reads one item; nil if there is none.
func (s *Store) get(ctx context.Context, key string) (dynamoitem.Item, error) {
	item, err := dynamoitem.Get(ctx, s.client, s.table, key)
	if err != nil {
		return nil, logsafe.Errorf("read from the merchant table: %w", err)
	}
	return item, nil
}
