// Package dynamo keeps the health of merchants' endpoints in the ledger's table, one small item an endpoint.
//
// It decides nothing about health. Its invariant: an item is replaced only by a change of the version that was read.
package dynamo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/webhook"
)

// Client is the part of the DynamoDB client that is needed.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

// Store keeps health.
type Store struct {
	client Client
	table  string
}

var _ webhook.HealthStore = (*Store)(nil)

// New makes a Store over the ledger's table.
func New(client Client, table string) *Store { return &Store{client: client, table: table} }

// The item's attributes.
const (
	attributeKey      = "pk"
	attributeMerchant = "merchant_id"
	attributeURL      = "url"
	attributeVersion  = "version"
	attributeFailures = "failures"
	attributeWhy      = "last_why"
	attributeStatus   = "last_status"
	attributeChanged  = "changed_at"
	attributeSlow     = "slow"
	attributeDisabled = "disabled_at"
)

// keyOf is the item of an endpoint. The URL may be long and hold anything, so its hash stands for it.
func keyOf(endpoint webhook.Endpoint) string {
	sum := sha256.Sum256([]byte(endpoint.MerchantID + "\x00" + endpoint.URL))
	return "endpoint#" + hex.EncodeToString(sum[:])
}

// Health implements webhook.HealthStore: one strongly consistent read.
func (s *Store) Health(ctx context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	health := webhook.Health{Endpoint: endpoint}
	output, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(s.table),
		Key:            map[string]types.AttributeValue{attributeKey: text(keyOf(endpoint))},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return health, fmt.Errorf("read an endpoint's health: %w", err)
	}
	if len(output.Item) == 0 {
		return health, nil
	}
	r := reader{item: output.Item}
	health.Version = r.number(attributeVersion)
	health.Failures = int(r.number(attributeFailures))
	health.LastStatus = int(r.number(attributeStatus))
	health.LastWhy = r.text(attributeWhy)
	health.ChangedAt = r.moment(attributeChanged)
	health.Slow = r.number(attributeSlow) == 1
	health.DisabledAt = r.moment(attributeDisabled)
	return health, r.err
}

// SaveHealth implements webhook.HealthStore: one conditional put.
func (s *Store) SaveHealth(ctx context.Context, h webhook.Health) (bool, error) {
	item := map[string]types.AttributeValue{
		attributeKey:      text(keyOf(h.Endpoint)),
		attributeMerchant: text(h.MerchantID),
		attributeURL:      text(h.URL),
		attributeVersion:  number(h.Version + 1),
		attributeFailures: number(int64(h.Failures)),
		attributeStatus:   number(int64(h.LastStatus)),
		attributeChanged:  number(h.ChangedAt.UnixMilli()),
	}
	if h.LastWhy != "" {
		item[attributeWhy] = text(h.LastWhy)
	}
	if h.Slow {
		item[attributeSlow] = number(1)
	}
	if !h.DisabledAt.IsZero() {
		item[attributeDisabled] = number(h.DisabledAt.UnixMilli())
	}
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                 aws.String(s.table),
		Item:                      item,
		ConditionExpression:       aws.String("attribute_not_exists(pk) OR #version = :version"),
		ExpressionAttributeNames:  map[string]string{"#version": attributeVersion},
		ExpressionAttributeValues: map[string]types.AttributeValue{":version": number(h.Version)},
	})
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("save an endpoint's health: %w", err)
	}
	return true, nil
}

func text(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }

func number(value int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(value, 10)}
}

// reader reads attributes and keeps the first fault. An absent attribute is its type's zero.
type reader struct {
	item map[string]types.AttributeValue
	err  error
}

func (r *reader) text(name string) string {
	value, is := r.item[name].(*types.AttributeValueMemberS)
	if !is {
		return ""
	}
	return value.Value
}

func (r *reader) number(name string) int64 {
	value, is := r.item[name].(*types.AttributeValueMemberN)
	if !is {
		return 0
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("an endpoint's health: attribute %s is not a whole number", name)
	}
	return n
}

func (r *reader) moment(name string) time.Time {
	milliseconds := r.number(name)
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds).UTC()
}
