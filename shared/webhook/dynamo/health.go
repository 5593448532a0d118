// Package dynamo stores the health of merchants' endpoints in the ledger's table. Each server that failed has a small
// item, which expires. Each disabled URL has one, which expires only after the URL is enabled again.
//
// It takes no decision about health. Its invariant: a write replaces an item only if its version is the one that was
// read.
package dynamo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/task"
	"mobilegateway/shared/webhook"
)

// Client is the part of the DynamoDB client that this package calls.
type Client interface {
	dynamoitem.Getter
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

// Store stores health.
type Store struct {
	// Start starts the goroutine of a read; nil means the go statement.
	Start task.Starter

	client Client
	table  string
	now    func() time.Time
}

// New returns a Store over the ledger's table. The table deletes expired items some days late, so now decides.
func New(client Client, table string, now func() time.Time) *Store {
	return &Store{client: client, table: table, now: now}
}

// The item's attributes.
const (
	attributeMerchant = "merchant_id"
	attributeURL      = "url" // the origin in a server's item
	attributeVersion  = "version"
	attributeFailures = "failures"
	attributeReason   = "last_why"
	attributeStatus   = "last_status"
	attributeChanged  = "changed_at"
	attributeSlow     = "slow"
	attributeDisabled = "disabled_at"
	attributeExpireAt = "expire_at" // seconds: the table's time to live
)

// hashedKey returns the key of an item. It contains a hash of the URL, which may be long and contain any character.
func hashedKey(prefix, merchantID, url string) string {
	sum := sha256.Sum256([]byte(merchantID + "\x00" + url))
	return prefix + hex.EncodeToString(sum[:])
}

// urlKey is the key of a disabled URL's item. Failures that an earlier version stored in that item are not read.
func urlKey(e webhook.Endpoint) string { return hashedKey("endpoint#", e.MerchantID, e.URL) }

// serverKey is the key of the item with a server's failures.
func serverKey(s webhook.Server) string { return hashedKey("server#", s.MerchantID, s.Origin) }

// Health implements webhook.HealthStore by two concurrent, strongly consistent reads.
func (s *Store) Health(ctx context.Context, endpoint webhook.Endpoint) (webhook.Health, error) {
	var server, disabled itemReader
	var group sync.WaitGroup
	s.Start.Go(&group, func() { server.read(ctx, s, serverKey(endpoint.Server())) })
	disabled.read(ctx, s, urlKey(endpoint))
	group.Wait()
	health := webhook.Health{Endpoint: endpoint}
	if err := errors.Join(server.err, disabled.err); err != nil {
		return health, err
	}
	health.Version = server.number(attributeVersion)
	if server.number(attributeExpireAt) > s.now().Unix() {
		health.Failures = int(server.number(attributeFailures))
		health.Slow = server.number(attributeSlow) == 1
		server.readLastFailure(&health)
	}
	health.DisabledVersion = disabled.number(attributeVersion)
	health.DisabledAt = disabled.timestamp(attributeDisabled)
	if !health.Enabled() {
		disabled.readLastFailure(&health)
	}
	return health, errors.Join(server.err, disabled.err)
}

// SaveHealth implements webhook.HealthStore by one conditional put of the server's item, which expires.
func (s *Store) SaveHealth(ctx context.Context, h webhook.Health) (bool, error) {
	server := h.Server()
	item := commonAttributes(serverKey(server), server.MerchantID, server.Origin, h)
	item[attributeFailures] = dynamoitem.Number(int64(h.Failures))
	item[attributeExpireAt] = dynamoitem.Number(h.ChangedAt.Add(webhook.HealthRetention).Unix())
	if h.Slow {
		item[attributeSlow] = dynamoitem.Number(1)
	}
	return s.put(ctx, item, h.Version)
}

// SaveDisabled implements webhook.HealthStore by one conditional put of the URL's item. The item of an enabled URL
// expires.
func (s *Store) SaveDisabled(ctx context.Context, h webhook.Health) (bool, error) {
	item := commonAttributes(urlKey(h.Endpoint), h.MerchantID, h.URL, h)
	if h.Enabled() {
		item[attributeExpireAt] = dynamoitem.Number(h.ChangedAt.Add(webhook.HealthRetention).Unix())
	} else {
		item[attributeDisabled] = dynamoitem.Number(h.DisabledAt.UnixMilli())
	}
	return s.put(ctx, item, h.DisabledVersion)
}

// commonAttributes returns the attributes that both kinds of items have.
func commonAttributes(key, merchantID, url string, h webhook.Health) dynamoitem.Item {
	item := dynamoitem.Item{
		dynamoitem.KeyAttribute: dynamoitem.Text(key),
		attributeMerchant:       dynamoitem.Text(merchantID),
		attributeURL:            dynamoitem.Text(url),
		attributeStatus:         dynamoitem.Number(int64(h.LastStatus)),
		attributeChanged:        dynamoitem.Number(h.ChangedAt.UnixMilli()),
	}
	if h.LastReason != "" {
		item[attributeReason] = dynamoitem.Text(h.LastReason)
	}
	return item
}

// put stores an item if the stored one has this version or does not exist. It is false if another write came first.
func (s *Store) put(ctx context.Context, item dynamoitem.Item, version int64) (bool, error) {
	item[attributeVersion] = dynamoitem.Number(version + 1)
	_, err := s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                 aws.String(s.table),
		Item:                      item,
		ConditionExpression:       aws.String("attribute_not_exists(pk) OR #version = :version"),
		ExpressionAttributeNames:  map[string]string{"#version": attributeVersion},
		ExpressionAttributeValues: dynamoitem.Item{":version": dynamoitem.Number(version)},
	})
	if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); failed {
		return false, nil
	}
	if err != nil {
		return false, logsafe.Errorf("endpoint health: save the item: %w", err)
	}
	return true, nil
}

// itemReader reads attributes and keeps the first error. An absent attribute is the zero value of its type.
type itemReader struct {
	item dynamoitem.Item
	err  error
}

// read reads the item under a key; an absent one has no attributes.
func (r *itemReader) read(ctx context.Context, s *Store, key string) {
	item, err := dynamoitem.Get(ctx, s.client, s.table, key)
	if err != nil {
		r.err = logsafe.Errorf("endpoint health: read the item: %w", err)
	}
	r.item = item
}

func (r *itemReader) number(name string) int64 {
	n, err := dynamoitem.ReadNumber(r.item, name)
	if err != nil && r.err == nil {
		r.err = logsafe.Errorf("endpoint health: %w", err)
	}
	return n
}

func (r *itemReader) timestamp(name string) time.Time {
	milliseconds := r.number(name)
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds).UTC()
}

// readLastFailure reads the reason, status and time of the last failed attempt.
func (r *itemReader) readLastFailure(h *webhook.Health) {
	h.LastStatus = int(r.number(attributeStatus))
	if reason := dynamoitem.ReadText(r.item, attributeReason); reason != "" {
		h.LastReason = reason
	}
	h.ChangedAt = r.timestamp(attributeChanged)
}
