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
	mustNotExist := aws.String("attribute_not_exists(" + attributeKey + ")")
	_, err = r.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{
				TableName: aws.String(r.table), ConditionExpression: mustNotExist, Item: nameReservationItem(p),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}},
			{Put: &types.Put{
				TableName: aws.String(r.table), ConditionExpression: mustNotExist, Item: profileItem(p, document),
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}},
		},
	})
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) && len(cancelled.CancellationReasons) == 2 {
		return createError(p, document, cancelled)
	}
	if err != nil {
		return fmt.Errorf("create a merchant: %w", err)
	}
	return nil
}

// createError finds out why a transaction was cancelled. What is there may be our own, whose answer was lost.
func createError(p *merchant.Profile, document []byte, cancelled *types.TransactionCanceledException) error {
	name, profile := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]
	switch {
	case conditionFailed(profile) && stringAttribute(profile.Item, attributeDocument) == string(document):
		return nil
	case conditionFailed(name) && stringAttribute(name.Item, attributeID) != p.ID:
		return merchant.ErrNameTaken
	case conditionFailed(name), conditionFailed(profile):
		return merchant.ErrIDTaken
	}
	return fmt.Errorf("create a merchant: %w", cancelled)
}

func conditionFailed(reason types.CancellationReason) bool {
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
		Key:                 itemKey(profilePrefix + p.ID),
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
	if err := updateError(err, document); err != nil {
		return err
	}
	p.Version = next.Version
	return nil
}

// updateError judges a refused write. What is there may be our own, whose answer was lost.
func updateError(err error, document []byte) error {
	var conditionFailure *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &conditionFailure):
		return fmt.Errorf("update a merchant: %w", err)
	case len(conditionFailure.Item) == 0:
		return merchant.ErrNotFound
	case stringAttribute(conditionFailure.Item, attributeDocument) == string(document):
		return nil
	}
	return merchant.ErrVersionConflict
}

// IDByName implements merchant.Registry: one strongly consistent read.
func (r *Registry) IDByName(ctx context.Context, name string) (string, error) {
	item, err := r.get(ctx, namePrefix+merchant.NormalizeName(name))
	if err != nil || item == nil {
		return "", err
	}
	return stringAttribute(item, attributeID), nil
}

// IDs implements merchant.Registry: a scan, page by page.
func (r *Registry) IDs(ctx context.Context) ([]string, error) {
	var ids []string
	var startKey map[string]types.AttributeValue
	for {
		page, err := r.client.Scan(ctx, &dynamodb.ScanInput{
			TableName:                 aws.String(r.table),
			ConsistentRead:            aws.Bool(true),
			ProjectionExpression:      aws.String(attributeKey),
			FilterExpression:          aws.String("begins_with(" + attributeKey + ", :prefix)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":prefix": stringValue(profilePrefix)},
			ExclusiveStartKey:         startKey,
		})
		if err != nil {
			return nil, fmt.Errorf("list the merchants: %w", err)
		}
		for _, item := range page.Items {
			ids = append(ids, strings.TrimPrefix(stringAttribute(item, attributeKey), profilePrefix))
		}
		if startKey = page.LastEvaluatedKey; len(startKey) == 0 {
			return ids, nil
		}
	}
}

// nameReservationItem is the item that keeps a name.
func nameReservationItem(p *merchant.Profile) map[string]types.AttributeValue {
	item := itemKey(namePrefix + merchant.NormalizeName(p.Name))
	item[attributeID] = stringValue(p.ID)
	return item
}

// profileItem is a profile's item.
func profileItem(p *merchant.Profile, document []byte) map[string]types.AttributeValue {
	item := itemKey(profilePrefix + p.ID)
	item[attributeDocument] = stringValue(string(document))
	item[attributeName] = stringValue(p.Name)
	item[attributeStatus] = stringValue(p.Status)
	item[attributeVersion] = numberValue(p.Version)
	return item
}
