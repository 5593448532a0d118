package gatewayctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"mobilegateway/shared/awsclient"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/limit"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/pause"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// Connect opens a deployment's stores by the variables that the SDK's tools know: AWS_REGION, the
// credentials, and AWS_ENDPOINT_URL_* for a local run. Nothing is sent yet.
func Connect(env System, p Deployment) (*Stores, error) {
	if p.LedgerTable == "" || p.MerchantTable == "" {
		return nil, usageError("LEDGER_TABLE and MERCHANT_TABLE are not set: name the deployment's tables, or say --local")
	}
	client, err := awsclient.New(env.Getenv)
	if err != nil {
		return nil, usageError("%w", err)
	}
	tables := client.DynamoDB()
	stores := &Stores{
		Merchants:      merchantdynamo.NewRegistry(tables, p.MerchantTable),
		Ledger:         ledgerdynamo.New(tables, p.LedgerTable),
		EndpointHealth: webhookdynamo.New(tables, p.LedgerTable, env.Now),
		Secrets:        secretsManagerStore{client.SecretsManager()},
		Audit:          auditTable{tables, p.MerchantTable},
	}
	// Without the table one thing alone cannot be done, giving an amount back: unknown resolve refuses an entry that may need it.
	if p.LimitTable != "" {
		stores.LimitCounter = &limit.DailyAmounts{Store: limitdynamo.New(tables, p.LimitTable), Now: env.Now, Rand: env.Rand, Sleep: pause.For}
	}
	return stores, nil
}

// secretsManagerStore is a Vault over Secrets Manager.
type secretsManagerStore struct{ client *secretsmanager.Client }

var _ SecretStore = secretsManagerStore{}

// Get implements Vault. The mark is made of the versions that are current and previous.
func (v secretsManagerStore) Get(ctx context.Context, name string) (StoredSecret, error) {
	current := StoredSecret{Name: name}
	now, err := v.readVersion(ctx, name, "AWSCURRENT")
	if err != nil {
		return current, err
	}
	before, err := v.readVersion(ctx, name, "AWSPREVIOUS")
	if err != nil {
		return current, err
	}
	current.Value = now.SecretBinary
	if now.SecretString != nil {
		current.Value = []byte(*now.SecretString)
	}
	sum := sha256.Sum256([]byte(name + "\x00" + aws.ToString(now.VersionId) + "\x00" + aws.ToString(before.VersionId)))
	current.Revision = hex.EncodeToString(sum[:])
	return current, nil
}

// readVersion reads one version; an empty one where there is none.
func (v secretsManagerStore) readVersion(ctx context.Context, name, stage string) (*secretsmanager.GetSecretValueOutput, error) {
	out, err := v.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(name), VersionStage: aws.String(stage)})
	var none *secrettypes.ResourceNotFoundException
	if errors.As(err, &none) {
		return &secretsmanager.GetSecretValueOutput{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return out, nil
}

// Put implements Vault. The request's token is made of what was read: of two changes of one state the service takes the
// first and refuses the second, and a repeat of our own changes nothing.
func (v secretsManagerStore) Put(ctx context.Context, current StoredSecret, value []byte) error {
	_, err := v.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(current.Name), SecretString: aws.String(string(value)), ClientRequestToken: aws.String(current.Revision),
	})
	var other *secrettypes.ResourceExistsException
	var none *secrettypes.ResourceNotFoundException
	switch {
	case errors.As(err, &other):
		return fmt.Errorf("secret %s was changed by another hand: try again", current.Name)
	case errors.As(err, &none):
		return fmt.Errorf("there is no secret %s: the deployment makes it", current.Name)
	case err != nil:
		return fmt.Errorf("write secret %s: %w", current.Name, err)
	}
	return nil
}

// auditTable is an AuditLog in the merchant table.
type auditTable struct {
	client *dynamodb.Client
	table  string
}

var _ AuditLog = auditTable{}

// The item of a record: its key, and the record as a document.
const (
	auditKey      = "pk"
	auditPrefix   = "audit#"
	auditDocument = "document"
)

// Record implements AuditLog: one PutItem, on "there is none", or on the first half as it was written. What stands there
// as it was to be written is our own write, whose answer was lost.
func (a auditTable) Record(ctx context.Context, r Record) error {
	begun := r
	begun.Outcome, begun.Detail = OutcomeStarted, ""
	document, err := json.Marshal(r)
	first, also := json.Marshal(begun)
	if err := errors.Join(err, also); err != nil {
		return err
	}
	put := &dynamodb.PutItemInput{
		TableName: aws.String(a.table), ConditionExpression: aws.String("attribute_not_exists(" + auditKey + ")"),
		Item: map[string]types.AttributeValue{
			auditKey:      &types.AttributeValueMemberS{Value: auditPrefix + r.ID},
			auditDocument: &types.AttributeValueMemberS{Value: string(document)},
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if r.Outcome != OutcomeStarted {
		put.ConditionExpression = aws.String(auditDocument + " = :begun")
		put.ExpressionAttributeValues = map[string]types.AttributeValue{":begun": &types.AttributeValueMemberS{Value: string(first)}}
	}
	_, err = a.client.PutItem(ctx, put)
	var other *types.ConditionalCheckFailedException
	if errors.As(err, &other) {
		if stored, _ := other.Item[auditDocument].(*types.AttributeValueMemberS); stored != nil && stored.Value == string(document) {
			return nil
		}
		if r.Outcome == OutcomeStarted {
			return fmt.Errorf("another audit record stands under %s", r.ID)
		}
		return fmt.Errorf("what stands under %s is not its first half", r.ID)
	}
	if err != nil {
		return fmt.Errorf("write an audit record: %w", err)
	}
	return nil
}

// Records implements AuditLog: a scan, page by page.
func (a auditTable) Records(ctx context.Context) ([]Record, error) {
	records := []Record{}
	pages := dynamodb.NewScanPaginator(a.client, &dynamodb.ScanInput{
		TableName: aws.String(a.table), ConsistentRead: aws.Bool(true), FilterExpression: aws.String("begins_with(" + auditKey + ", :prefix)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":prefix": &types.AttributeValueMemberS{Value: auditPrefix}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the audit records: %w", err)
		}
		for _, item := range page.Items {
			var record Record
			document, _ := item[auditDocument].(*types.AttributeValueMemberS)
			if document == nil || json.Unmarshal([]byte(document.Value), &record) != nil {
				return nil, errors.New("an audit record is damaged")
			}
			records = append(records, record)
		}
	}
	return records, nil
}
