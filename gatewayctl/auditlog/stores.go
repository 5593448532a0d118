package auditlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
)

// Table is an AuditLog in the merchant table (decision "audit-chain").
type Table struct {
	Client *dynamodb.Client
	Name   string
}

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
func (a Table) Append(ctx context.Context, r Record) (Item, error) {
	last, err := a.head(ctx)
	for try := 1; err == nil && try <= maxAppends; try++ {
		item := last.Next(r)
		var stored Item
		stored, err = a.Insert(ctx, item)
		if err != nil {
			break
		}
		if stored == item {
			a.saveHead(ctx, item)
			return item, nil
		}
		last, _ = linkTo(stored)
		if try == maxHeadDelay || last.Sequence == maxSequence {
			last, err = a.end(ctx)
		}
	}
	return Item{}, cmp.Or(err, errors.New("other commands write audit records: run the command again"))
}

// Insert stores an item if its key is free, and returns what is stored there.
func (a Table) Insert(ctx context.Context, item Item) (Item, error) {
	stored := dynamoitem.Key(item.Key)
	stored[auditDocument] = dynamoitem.Text(item.Document)
	_, err := a.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(a.Name), Item: stored,
		ConditionExpression:                 aws.String("attribute_not_exists(" + dynamoitem.KeyAttribute + ")"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if other, found := errors.AsType[*types.ConditionalCheckFailedException](err); found {
		return Item{item.Key, dynamoitem.ReadText(other.Item, auditDocument)}, nil
	}
	if err != nil {
		return Item{}, fmt.Errorf("write audit record %s: %w", item.Key, err)
	}
	return item, nil
}

// head returns where the head says that the chain ends. Without a head it reads all records.
func (a Table) head(ctx context.Context) (Link, error) {
	item, err := dynamoitem.Get(ctx, a.Client, a.Name, headKey)
	if err != nil {
		return Link{}, fmt.Errorf("read the head of the audit records: %w", err)
	}
	sequence, damaged := dynamoitem.ReadNumber(item, headSequence)
	hash := dynamoitem.ReadText(item, headHash)
	if damaged == nil && sequence > 0 && sequence < maxSequence && hash != "" {
		return Link{sequence, hash}, nil
	}
	return a.end(ctx)
}

// end reads all records and returns the last place.
func (a Table) end(ctx context.Context) (Link, error) {
	items, err := a.Items(ctx)
	return LastLink(items), err
}

// saveHead moves the head forward. A failure is harmless: the next Append finds the end all the same.
func (a Table) saveHead(ctx context.Context, last Item) {
	link, _ := linkTo(last)
	item := dynamoitem.Key(headKey)
	item[headSequence], item[headHash] = dynamoitem.Number(link.Sequence), dynamoitem.Text(link.Hash)
	_, _ = a.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(a.Name), Item: item,
		ConditionExpression: aws.String("attribute_not_exists(" + headSequence + ") OR " +
			headSequence + " < :sequence OR " + headSequence + " >= :max"),
		ExpressionAttributeValues: dynamoitem.Item{
			":sequence": dynamoitem.Number(link.Sequence), ":max": dynamoitem.Number(maxSequence),
		},
	})
}

// Items implements AuditLog by a scan.
func (a Table) Items(ctx context.Context) ([]Item, error) {
	items := []Item{}
	pages := dynamodb.NewScanPaginator(a.Client, &dynamodb.ScanInput{
		TableName: aws.String(a.Name), ConsistentRead: aws.Bool(true),
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
			items = append(items, Item{key, dynamoitem.ReadText(item, auditDocument)})
		}
	}
	return items, nil
}

// LogCopies are AuditCopies in CloudWatch Logs: one line for each record, in the one stream of a group.
type LogCopies struct {
	Client *cloudwatchlogs.Client
	Group  string
}

// Write implements AuditCopies. The service accepts a request and may still reject its line, for example by its time.
func (l LogCopies) Write(ctx context.Context, at time.Time, document string) error {
	out, err := l.Client.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
		LogGroupName: aws.String(l.Group), LogStreamName: aws.String(auditStream),
		LogEvents: []logtypes.InputLogEvent{{
			Timestamp: aws.Int64(at.UnixMilli()), Message: aws.String(document),
		}},
	})
	if err == nil && out.RejectedLogEventsInfo != nil {
		err = errors.New("the line was rejected: set the clock of this machine")
	}
	if err != nil {
		return fmt.Errorf("write a copy to log group %s: %w", l.Group, err)
	}
	return nil
}

// Documents implements AuditCopies. The service returns a page's own token again at the end.
func (l LogCopies) Documents(ctx context.Context) ([]string, error) {
	var documents []string
	input := &cloudwatchlogs.GetLogEventsInput{
		LogGroupName: aws.String(l.Group), LogStreamName: aws.String(auditStream), StartFromHead: aws.Bool(true),
	}
	for {
		page, err := l.Client.GetLogEvents(ctx, input)
		if err != nil {
			return nil, fmt.Errorf("read the copies in log group %s: %w", l.Group, err)
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

// auditStream is the stream in the group, as template.yaml names it.
const auditStream = "audit"

// FileCopies are AuditCopies in a file of this machine, one line for each record. Only a local run uses it, because its
// user may change the file.
type FileCopies struct{ Path string }

// Write implements AuditCopies.
func (f FileCopies) Write(_ context.Context, _ time.Time, document string) error {
	file, err := os.OpenFile(f.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(document + "\n")
	return errors.Join(err, file.Close())
}

// Documents implements AuditCopies.
func (f FileCopies) Documents(context.Context) (documents []string, err error) {
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		documents = append(documents, strings.TrimSuffix(line, "\n"))
	}
	return documents, err
}
