// Package dynamo keeps the health of merchants' endpoints in the ledger's table: one small item for each server that
// failed, which expires, and one for each URL that was disabled, which does not.
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
	"sync"
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
	now    func() time.Time
}

var _ webhook.HealthStore = (*Store)(nil)

// New makes a Store over the ledger's table. The table drops what has expired some days late; now tells earlier.
func New(client Client, table string, now func() time.Time) *Store {
	return &Store{client: client, table: table, now: now}
}

// The item's attributes.
const (
	attributeKey      = "pk"
	attributeMerchant = "merchant_id"
	attributeURL      = "url" // of a server, its origin
	attributeVersion  = "version"
	attributeFailures = "failures"
	attributeWhy      = "last_why"
	attributeStatus   = "last_status"
	attributeChanged  = "changed_at"
	attributeSlow     = "slow"
	attributeDisabled = "disabled_at"
	attributeExpireAt = "expire_at" // seconds, as the table's time to live needs them
)

// keyOf is the key of an item. A URL may be long and hold anything, so its hash stands for it.
func keyOf(prefix, merchantID, url string) string {
	sum := sha256.Sum256([]byte(merchantID + "\x00" + url))
	return prefix + hex.EncodeToString(sum[:])
}

// urlKey is the item that says whether a URL is disabled. Earlier versions kept its failures there too, which are not read
// any more.
func urlKey(e webhook.Endpoint) string { return keyOf("endpoint#", e.MerchantID, e.URL) }

// serverKey is the item of a server's failures.
func serverKey(s webhook.Server) string { return keyOf("server#", s.MerchantID, s.Origin) }

// Health implements webhook.HealthStore: two strongly consistent reads, side by side.
func (s *Store) Health(ctx context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	var server, disabled map[string]types.AttributeValue
	var serverErr, disabledErr error
	var group sync.WaitGroup
	group.Go(func() { server, serverErr = s.get(ctx, serverKey(endpoint.Server())) })
	disabled, disabledErr = s.get(ctx, urlKey(endpoint))
	group.Wait()
	health := webhook.Health{Endpoint: endpoint}
	if err := errors.Join(serverErr, disabledErr); err != nil {
		return health, err
	}
	r := reader{item: server}
	health.Version = r.number(attributeVersion)
	if r.number(attributeExpireAt) > s.now().Unix() {
		health.Failures = int(r.number(attributeFailures))
		health.Slow = r.number(attributeSlow) == 1
		r.last(&health)
	}
	r.item = disabled
	health.DisabledVersion, health.DisabledAt = r.number(attributeVersion), r.moment(attributeDisabled)
	if !health.Enabled() {
		r.last(&health)
	}
	return health, r.err
}

// get reads an item; nil where there is none.
func (s *Store) get(ctx context.Context, key string) (map[string]types.AttributeValue, error) {
	output, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      aws.String(s.table),
		Key:            map[string]types.AttributeValue{attributeKey: text(key)},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, fmt.Errorf("read an endpoint's health: %w", err)
	}
	return output.Item, nil
}

// SaveHealth implements webhook.HealthStore: one conditional put of the server's item, which expires.
func (s *Store) SaveHealth(ctx context.Context, h webhook.Health) (bool, error) {
	server := h.Server()
	item := newItem(serverKey(server), server.MerchantID, server.Origin, h)
	item[attributeFailures] = number(int64(h.Failures))
	item[attributeExpireAt] = number(h.ChangedAt.Add(webhook.HealthLife).Unix())
	if h.Slow {
		item[attributeSlow] = number(1)
	}
	return s.put(ctx, item, h.Version)
}

// SaveDisabled implements webhook.HealthStore: one conditional put of the URL's item, which expires once it is enabled.
func (s *Store) SaveDisabled(ctx context.Context, h webhook.Health) (bool, error) {
	item := newItem(urlKey(h.Endpoint), h.MerchantID, h.URL, h)
	if h.Enabled() {
		item[attributeExpireAt] = number(h.ChangedAt.Add(webhook.HealthLife).Unix())
	} else {
		item[attributeDisabled] = number(h.DisabledAt.UnixMilli())
	}
	return s.put(ctx, item, h.DisabledVersion)
}

// newItem is what both kinds of items have.
func newItem(key, merchantID, url string, h webhook.Health) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{
		attributeKey:      text(key),
		attributeMerchant: text(merchantID),
		attributeURL:      text(url),
		attributeStatus:   number(int64(h.LastStatus)),
		attributeChanged:  number(h.ChangedAt.UnixMilli()),
	}
	if h.LastWhy != "" {
		item[attributeWhy] = text(h.LastWhy)
	}
	return item
}

// put stores an item where the stored one has a version, or is not there.
func (s *Store) put(ctx context.Context, item map[string]types.AttributeValue, version int64) (bool, error) {
	item[attributeVersion] = number(version + 1)
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                 aws.String(s.table),
		Item:                      item,
		ConditionExpression:       aws.String("attribute_not_exists(pk) OR #version = :version"),
		ExpressionAttributeNames:  map[string]string{"#version": attributeVersion},
		ExpressionAttributeValues: map[string]types.AttributeValue{":version": number(version)},
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

// last reads the last failed attempt and when it was.
func (r *reader) last(h *webhook.Health) {
	h.LastStatus = int(r.number(attributeStatus))
	h.LastWhy = r.text(attributeWhy)
	h.ChangedAt = r.moment(attributeChanged)
}
