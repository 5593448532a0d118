package gatewayctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/localhost"
)

// auditTable is an AuditLog in the merchant table (decision "audit-chain").
type auditTable struct {
	client *dynamodb.Client
	table  string
}

var _ AuditLog = auditTable{}

// auditDocument is the attribute of a record as a JSON document.
const auditDocument = "document"

// The item with the last place of the chain. It only saves reads: if it is late or absent, Append finds the end itself.
const (
	headKey      = "audit-head"
	headSequence = "chain_sequence"
	headHash     = "chain_hash"
)

// Limits of the search for the end of the chain, in records.
const (
	maxHeadDelay = 100 // how far the head may be behind, before all records are read
	maxAppends   = 2 * maxHeadDelay
)

// Append implements AuditLog by a conditional PutItem for each place, until one is free. If the stored record equals r,
// an earlier PutItem succeeded but its response was lost.
func (a auditTable) Append(ctx context.Context, r Record) (AuditItem, error) {
	last, err := a.head(ctx)
	for try := 1; err == nil && try <= maxAppends; try++ {
		item := last.next(r)
		var stored AuditItem
		if stored, err = a.insert(ctx, item); err != nil {
			break
		}
		if stored == item {
			a.saveHead(ctx, item)
			return item, nil
		}
		last, _ = linkTo(stored)
		if try == maxHeadDelay || last.sequence == maxSequence {
			last, err = a.end(ctx)
		}
	}
	return AuditItem{}, cmp.Or(err, errors.New("other commands write audit records: run the command again"))
}

// insert stores an item if its key is free, and returns what is stored there.
func (a auditTable) insert(ctx context.Context, item AuditItem) (AuditItem, error) {
	stored := dynamoitem.Key(item.Key)
	stored[auditDocument] = dynamoitem.Text(item.Document)
	_, err := a.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(a.table), Item: stored,
		ConditionExpression:                 aws.String("attribute_not_exists(" + dynamoitem.KeyAttribute + ")"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if other, found := errors.AsType[*types.ConditionalCheckFailedException](err); found {
		return AuditItem{item.Key, dynamoitem.ReadText(other.Item, auditDocument)}, nil
	}
	if err != nil {
		return AuditItem{}, fmt.Errorf("write audit record %s: %w", item.Key, err)
	}
	return item, nil
}

// head returns where the head says that the chain ends. Without a head it reads all records.
func (a auditTable) head(ctx context.Context) (chainLink, error) {
	item, err := dynamoitem.Get(ctx, a.client, a.table, headKey)
	if err != nil {
		return chainLink{}, fmt.Errorf("read the head of the audit records: %w", err)
	}
	sequence, damaged := dynamoitem.ReadNumber(item, headSequence)
	hash := dynamoitem.ReadText(item, headHash)
	if damaged == nil && sequence > 0 && sequence < maxSequence && hash != "" {
		return chainLink{sequence, hash}, nil
	}
	return a.end(ctx)
}

// end reads all records and returns the last place.
func (a auditTable) end(ctx context.Context) (chainLink, error) {
	items, err := a.Items(ctx)
	return lastLink(items), err
}

// saveHead moves the head forward. A failure is harmless: the next Append finds the end all the same.
func (a auditTable) saveHead(ctx context.Context, last AuditItem) {
	link, _ := linkTo(last)
	item := dynamoitem.Key(headKey)
	item[headSequence], item[headHash] = dynamoitem.Number(link.sequence), dynamoitem.Text(link.hash)
	_, _ = a.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(a.table), Item: item,
		ConditionExpression: aws.String("attribute_not_exists(" + headSequence + ") OR " +
			headSequence + " < :sequence OR " + headSequence + " >= :max"),
		ExpressionAttributeValues: dynamoitem.Item{
			":sequence": dynamoitem.Number(link.sequence), ":max": dynamoitem.Number(maxSequence),
		},
	})
}

// Items implements AuditLog by a scan.
func (a auditTable) Items(ctx context.Context) ([]AuditItem, error) {
	items := []AuditItem{}
	pages := dynamodb.NewScanPaginator(a.client, &dynamodb.ScanInput{
		TableName: aws.String(a.table), ConsistentRead: aws.Bool(true),
		FilterExpression:          aws.String("begins_with(" + dynamoitem.KeyAttribute + ", :prefix)"),
		ExpressionAttributeValues: dynamoitem.Item{":prefix": dynamoitem.Text(auditPrefix)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the audit records: %w", err)
		}
		for _, item := range page.Items {
			key := dynamoitem.ReadText(item, dynamoitem.KeyAttribute)
			items = append(items, AuditItem{key, dynamoitem.ReadText(item, auditDocument)})
		}
	}
	return items, nil
}

// logCopies are AuditCopies in CloudWatch Logs: one line for each record, in the one stream of a group.
type logCopies struct {
	client *cloudwatchlogs.Client
	group  string
}

var _ AuditCopies = logCopies{}

// auditStream is the stream in the group, as template.yaml names it.
const auditStream = "audit"

// Write implements AuditCopies. The service accepts a request and may still reject its line, for example by its time.
func (l logCopies) Write(ctx context.Context, at time.Time, document string) error {
	out, err := l.client.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
		LogGroupName: aws.String(l.group), LogStreamName: aws.String(auditStream),
		LogEvents: []logtypes.InputLogEvent{{
			Timestamp: aws.Int64(at.UnixMilli()), Message: aws.String(document),
		}},
	})
	if err == nil && out.RejectedLogEventsInfo != nil {
		err = errors.New("the line was rejected: set the clock of this machine")
	}
	if err != nil {
		return fmt.Errorf("write a copy to log group %s: %w", l.group, err)
	}
	return nil
}

// Documents implements AuditCopies. The service returns a page's own token again at the end.
func (l logCopies) Documents(ctx context.Context) ([]string, error) {
	var documents []string
	input := &cloudwatchlogs.GetLogEventsInput{
		LogGroupName: aws.String(l.group), LogStreamName: aws.String(auditStream), StartFromHead: aws.Bool(true),
	}
	for {
		page, err := l.client.GetLogEvents(ctx, input)
		if err != nil {
			return nil, fmt.Errorf("read the copies in log group %s: %w", l.group, err)
		}
		for _, event := range page.Events {
			documents = append(documents, aws.ToString(event.Message))
		}
		if aws.ToString(page.NextForwardToken) == aws.ToString(input.NextToken) {
			return documents, nil
		}
		input.NextToken = page.NextForwardToken
	}
}

// errNoAuditCopies refuses a command that writes or compares copies.
var errNoAuditCopies = usageError("AUDIT_LOG_GROUP is not set: name the log group of audit records, or use --local")

// connectAudit adds the audit's stores. A deployment is local if its tables and its secrets are at a loopback address.
// Only there the user of the machine is the caller, and a file may have the copies.
func (s *Stores) connectAudit(client *awsclient.Client, env System, p Deployment) {
	s.Audit = auditTable{client.DynamoDB(), p.MerchantTable}
	isLocal := isLoopback(endpointOf(env, "DYNAMODB")) && isLoopback(endpointOf(env, "SECRETS_MANAGER"))
	file := env.Getenv(auditFileVariable)
	switch {
	case isLocal && file != "":
		s.AuditCopies = fileCopies{file}
	case p.AuditLogGroup != "":
		logs := cloudwatchlogs.NewFromConfig(client.Config(), func(o *cloudwatchlogs.Options) {
			o.BaseEndpoint = endpointOf(env, "CLOUDWATCH_LOGS")
		})
		s.AuditCopies = logCopies{logs, p.AuditLogGroup}
	}
	if isLocal {
		s.Caller = func(context.Context) (string, error) { return "local:" + env.User, nil }
		return
	}
	s.Caller = func(ctx context.Context) (string, error) {
		identity, err := sts.NewFromConfig(client.Config(), func(o *sts.Options) {
			if endpointOf(env, "DYNAMODB") != nil { // AWS's own tables trust only AWS's own identities
				o.BaseEndpoint = endpointOf(env, "STS")
			}
		}).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", fmt.Errorf("AWS does not confirm who you are: %w", err)
		}
		return aws.ToString(identity.Arn), nil
	}
}

// endpointOf returns the address of a service from the environment, nil for AWS's own.
func endpointOf(env System, service string) *string {
	address := cmp.Or(env.Getenv("AWS_ENDPOINT_URL_"+service), env.Getenv("AWS_ENDPOINT_URL"))
	if address == "" {
		return nil
	}
	return &address
}

// isLoopback reports whether the host of an address is this machine.
func isLoopback(address *string) bool {
	parsed, err := url.Parse(aws.ToString(address))
	return err == nil && localhost.IsLoopback(parsed.Hostname())
}
