package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/merchant"
)

// Client is the part of the DynamoDB client that onboarding needs.
type Client interface {
	Getter
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Registry reads and writes profiles, for onboarding.
type Registry struct {
	*Store
	client Client
}

var _ merchant.Registry = (*Registry)(nil)

// NewRegistry makes a Registry over a table (MERCHANT_TABLE).
func NewRegistry(client Client, table string) *Registry {
	return &Registry{Store: New(client, table), client: client}
}

// Create implements merchant.Registry: one transaction, the name's reservation first.
func (r *Registry) Create(ctx context.Context, p *merchant.Profile) error {
	document, err := merchant.Encode(p)
	if err != nil {
		return err
	}
	absent := aws.String("attribute_not_exists(" + attributeKey + ")")
	_, err = r.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{
				TableName: aws.String(r.table), ConditionExpression: absent, Item: reservation(p),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}},
			{Put: &types.Put{
				TableName: aws.String(r.table), ConditionExpression: absent, Item: profileItem(p, document),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}},
		},
	})
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) && len(cancelled.CancellationReasons) == 2 {
		return createRefused(p, document, cancelled)
	}
	if err != nil {
		return fmt.Errorf("create a merchant: %w", err)
	}
	return nil
}

// createRefused finds out why a transaction was cancelled. What is there may be our own, whose answer was lost.
func createRefused(p *merchant.Profile, document []byte, cancelled *types.TransactionCanceledException) error {
	name, profile := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]
	switch {
	case failedCondition(profile) && text(profile.Item, attributeDocument) == string(document):
		return nil
	case failedCondition(name) && text(name.Item, attributeID) != p.ID:
		return merchant.ErrNameTaken
	case failedCondition(name), failedCondition(profile):
		return merchant.ErrIDTaken
	}
	return fmt.Errorf("create a merchant: %w", cancelled)
}

func failedCondition(reason types.CancellationReason) bool {
	return aws.ToString(reason.Code) == "ConditionalCheckFailed"
}

// Update implements merchant.Registry: one conditional write. Attributes of the item that this version of the program
// does not know stay.
func (r *Registry) Update(ctx context.Context, p *merchant.Profile) error {
	next := p.Clone()
	next.Version++
	document, err := merchant.Encode(next)
	if err != nil {
		return err
	}
	_, err = r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(r.table),
		Key:                 keyOf(profilePrefix + p.ID),
		UpdateExpression:    aws.String("SET #document = :document, #status = :status, #version = :next"),
		ConditionExpression: aws.String("#version = :version AND #name = :name"),
		ExpressionAttributeNames: map[string]string{
			"#document": attributeDocument, "#status": attributeStatus, "#version": attributeVersion, "#name": attributeName,
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":document": stringValue(string(document)), ":status": stringValue(next.Status), ":name": stringValue(p.Name),
			":version": numberValue(p.Version), ":next": numberValue(next.Version),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err := updateRefused(err, document); err != nil {
		return err
	}
	p.Version = next.Version
	return nil
}

// updateRefused judges a refused write. What is there may be our own, whose answer was lost.
func updateRefused(err error, document []byte) error {
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refused):
		return fmt.Errorf("update a merchant: %w", err)
	case len(refused.Item) == 0:
		return merchant.ErrGone
	case text(refused.Item, attributeDocument) == string(document):
		return nil
	}
	return merchant.ErrChanged
}

// IDOf implements merchant.Registry: one strongly consistent read.
func (r *Registry) IDOf(ctx context.Context, name string) (string, error) {
	item, err := r.get(ctx, namePrefix+merchant.NameKey(name))
	if err != nil || item == nil {
		return "", err
	}
	return text(item, attributeID), nil
}

// IDs implements merchant.Registry: a scan, page by page.
func (r *Registry) IDs(ctx context.Context) ([]string, error) {
	var ids []string
	var from map[string]types.AttributeValue
	for {
		page, err := r.client.Scan(ctx, &dynamodb.ScanInput{
			TableName:                 aws.String(r.table),
			ConsistentRead:            aws.Bool(true),
			ProjectionExpression:      aws.String(attributeKey),
			FilterExpression:          aws.String("begins_with(" + attributeKey + ", :prefix)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":prefix": stringValue(profilePrefix)},
			ExclusiveStartKey:         from,
		})
		if err != nil {
			return nil, fmt.Errorf("list the merchants: %w", err)
		}
		for _, item := range page.Items {
			ids = append(ids, strings.TrimPrefix(text(item, attributeKey), profilePrefix))
		}
		if from = page.LastEvaluatedKey; len(from) == 0 {
			return ids, nil
		}
	}
}

// reservation is the item that keeps a name.
func reservation(p *merchant.Profile) map[string]types.AttributeValue {
	item := keyOf(namePrefix + merchant.NameKey(p.Name))
	item[attributeID] = stringValue(p.ID)
	return item
}

// profileItem is a profile's item.
func profileItem(p *merchant.Profile, document []byte) map[string]types.AttributeValue {
	item := keyOf(profilePrefix + p.ID)
	item[attributeDocument] = stringValue(string(document))
	item[attributeName] = stringValue(p.Name)
	item[attributeStatus] = stringValue(p.Status)
	item[attributeVersion] = numberValue(p.Version)
	return item
}
