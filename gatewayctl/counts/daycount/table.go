package daycount

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
)

// Store keeps counts in their stored form.
type Store interface {
	// Load returns the stored forms of up to dynamoitem.MaxBatch keys; a day that is not counted is missing. unread are
	// the keys that the table did not read, because it throttles.
	Load(ctx context.Context, keys []Key) (forms map[Key]string, unread []Key, err error)

	// Save replaces the form of a key, unless a newer version of the tool stored the present one: ErrVersion.
	Save(ctx context.Context, key Key, form string) error
}

// Client is the part of the DynamoDB client that the table uses.
type Client interface {
	dynamoitem.BatchGetter
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.UpdateItemOutput, error)
}

// Table is the Store in the table of limits. There each item expires, nothing scans the items, and all of them can be
// computed from the ledger again. The primary key is "counts#<merchant id>#<day>".
type Table struct {
	Client Client
	Name   string
}

const (
	keyPrefix        = "counts#"
	attributeCounts  = "counts"
	attributeVersion = "counts_version"
)

func (k Key) text() string { return keyPrefix + k.MerchantID + "#" + k.Day }

// Load implements Store with one call.
func (t Table) Load(ctx context.Context, keys []Key) (forms map[Key]string, unread []Key, err error) {
	wanted := make([]dynamoitem.Item, len(keys))
	for i, key := range keys {
		wanted[i] = dynamoitem.Key(key.text())
	}
	items, left, err := dynamoitem.GetBatch(ctx, t.Client, t.Name, wanted)
	if err != nil {
		return nil, nil, dynamoitem.DescribeError("counts: reading", err)
	}
	forms = map[Key]string{}
	for _, item := range items {
		forms[keyOfItem(item)] = dynamoitem.ReadText(item, attributeCounts)
	}
	for _, item := range left {
		unread = append(unread, keyOfItem(item))
	}
	return forms, unread, nil
}

func keyOfItem(item dynamoitem.Item) Key {
	text := strings.TrimPrefix(dynamoitem.ReadText(item, dynamoitem.KeyAttribute), keyPrefix)
	at := max(0, strings.LastIndex(text, "#"))
	return Key{text[:at], strings.TrimPrefix(text[at:], "#")}
}

// Save implements Store with one UpdateItem. Only the same or an older version is replaced.
func (t Table) Save(ctx context.Context, key Key, form string) error {
	expireAt, err := key.expireAt()
	if err != nil {
		return fmt.Errorf("counts: %q is not a day", key.Day)
	}
	_, err = t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(t.Name),
		Key:                 dynamoitem.Key(key.text()),
		UpdateExpression:    aws.String("SET #counts = :counts, #version = :version, expire_at = :expire"),
		ConditionExpression: aws.String("attribute_not_exists(#version) OR #version <= :version"),
		ExpressionAttributeNames: map[string]string{
			"#counts": attributeCounts, "#version": attributeVersion,
		},
		ExpressionAttributeValues: dynamoitem.Item{
			":counts": dynamoitem.Text(form), ":version": dynamoitem.Number(Version),
			":expire": dynamoitem.Number(expireAt.Unix()),
		},
	})
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return ErrVersion
	}
	if err != nil {
		return dynamoitem.DescribeError("counts: storing", err)
	}
	return nil
}
