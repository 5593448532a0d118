package dynamo

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
)

// Client is the part of the DynamoDB client that onboarding needs.
type Client interface {
	dynamoitem.Getter
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (
		*dynamodb.TransactWriteItemsOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Registry reads and writes profiles, for onboarding.
type Registry struct {
	*Store
	client Client
}

// NewRegistry makes a Registry over a table (MERCHANT_TABLE).
func NewRegistry(client Client, table string) *Registry {
	return &Registry{Store: New(client, table), client: client}
}

// Create implements merchant.Registry with one transaction, the name's reservation first.
func (r *Registry) Create(ctx context.Context, p *merchant.Profile) error {
	document, err := merchant.Encode(p)
	if err != nil {
		return err
	}
	putNew := func(item dynamoitem.Item) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: aws.String(r.table), ConditionExpression: aws.String("attribute_not_exists(pk)"), Item: item,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	reservation := dynamoitem.Key(namePrefix + merchant.NormalizeName(p.Name))
	reservation[attributeID] = dynamoitem.Text(p.ID)
	_, err = r.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{putNew(reservation), putNew(profileItem(p, document))},
	})
	cancelled, found := errors.AsType[*types.TransactionCanceledException](err)
	if found && len(cancelled.CancellationReasons) == 2 {
		return createError(p, document, cancelled)
	}
	if err != nil {
		return logsafe.Errorf("create a merchant: %w", err)
	}
	return nil
}

// createError returns the reason of a cancelled transaction. An existing equal profile is our own write, whose response
// was lost.
func createError(p *merchant.Profile, document []byte, cancelled *types.TransactionCanceledException) error {
	name, profile := cancelled.CancellationReasons[0], cancelled.CancellationReasons[1]
	switch {
	case conditionFailed(profile) && dynamoitem.ReadText(profile.Item, attributeDocument) == string(document):
		return nil
	case conditionFailed(name) && dynamoitem.ReadText(name.Item, attributeID) != p.ID:
		return merchant.ErrNameTaken
	case conditionFailed(name), conditionFailed(profile):
		return merchant.ErrIDTaken
	}
	return logsafe.Errorf("create a merchant: %w", cancelled)
}

func conditionFailed(reason types.CancellationReason) bool {
	return aws.ToString(reason.Code) == "ConditionalCheckFailed"
}

// Update implements merchant.Registry with one conditional write. It keeps attributes that this version of the program
// does not know.
func (r *Registry) Update(ctx context.Context, p *merchant.Profile) error {
	next := p.Clone()
	next.Version++
	document, err := merchant.Encode(next)
	if err != nil {
		return err
	}
	_, err = r.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           aws.String(r.table),
		Key:                 dynamoitem.Key(profilePrefix + p.ID),
		UpdateExpression:    aws.String("SET #document = :document, #status = :status, #version = :next"),
		ConditionExpression: aws.String("#version = :version AND #name = :name"),
		ExpressionAttributeNames: map[string]string{
			"#document": attributeDocument, "#status": attributeStatus,
			"#version": attributeVersion, "#name": attributeName,
		},
		ExpressionAttributeValues: dynamoitem.Item{
			":document": dynamoitem.Text(string(document)), ":status": dynamoitem.Text(next.Status),
			":name":    dynamoitem.Text(p.Name),
			":version": dynamoitem.Number(p.Version), ":next": dynamoitem.Number(next.Version),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if err := updateError(err, document); err != nil {
		return err
	}
	p.Version = next.Version
	return nil
}

// updateError maps the error of a write. An existing equal profile is our own write, whose response was lost.
func updateError(err error, document []byte) error {
	var conditionFailure *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &conditionFailure):
		return logsafe.Errorf("update a merchant: %w", err)
	case len(conditionFailure.Item) == 0:
		return merchant.ErrNotFound
	case dynamoitem.ReadText(conditionFailure.Item, attributeDocument) == string(document):
		return nil
	}
	return merchant.ErrVersionConflict
}

// IDByName implements merchant.Registry with one strongly consistent read.
func (r *Registry) IDByName(ctx context.Context, name string) (string, error) {
	item, err := r.get(ctx, namePrefix+merchant.NormalizeName(name))
	return dynamoitem.ReadText(item, attributeID), err
}

// IDs implements merchant.Registry with a scan, page by page.
func (r *Registry) IDs(ctx context.Context) ([]string, error) {
	var ids []string
	pages := dynamodb.NewScanPaginator(r.client, &dynamodb.ScanInput{
		TableName:                 aws.String(r.table),
		ConsistentRead:            aws.Bool(true),
		ProjectionExpression:      aws.String(dynamoitem.KeyAttribute),
		FilterExpression:          aws.String("begins_with(pk, :prefix)"),
		ExpressionAttributeValues: dynamoitem.Item{":prefix": dynamoitem.Text(profilePrefix)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, logsafe.Errorf("list the merchants: %w", err)
		}
		for _, item := range page.Items {
			ids = append(ids, strings.TrimPrefix(dynamoitem.ReadText(item, dynamoitem.KeyAttribute), profilePrefix))
		}
	}
	return ids, nil
}

func profileItem(p *merchant.Profile, document []byte) dynamoitem.Item {
	item := dynamoitem.Key(profilePrefix + p.ID)
	item[attributeDocument] = dynamoitem.Text(string(document))
	item[attributeName] = dynamoitem.Text(p.Name)
	item[attributeStatus] = dynamoitem.Text(p.Status)
	item[attributeVersion] = dynamoitem.Number(p.Version)
	return item
}
