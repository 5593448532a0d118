package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// The limits of package awsclient.
const (
	maxAttempts    = 3
	attemptTimeout = 1500 * time.Millisecond
	firstBackoff   = 50 * time.Millisecond
)

// The operations of a Call.
const (
	operationPut      = "PutItem"
	operationGet      = "GetItem"
	operationGetBatch = "BatchGetItem"
	operationUpdate   = "UpdateItem"
	operationQuery    = "Query"
	operationScan     = "Scan"
	operationTransact = "TransactWriteItems"
)

// Outcome is what happens to one attempt of a call.
type Outcome int

// The outcomes. A read has no effect, so AppliedLate and NotAppliedTimeout are the same for it.
const (
	Applied              Outcome = iota // the response arrives
	AppliedResponseLost                 // applied, and no response within the attempt's timeout
	AppliedThenCut                      // applied, and the connection is cut at once
	AppliedInternalError                // applied, and the response is a 500
	AppliedLate                         // no response within the timeout, and Client.Late gets the write to apply later
	NotAppliedTimeout                   // not applied, and no response within the timeout
	NotAppliedCut                       // not applied, and the connection is cut at once
	Throttled                           // not applied: ProvisionedThroughputExceededException
	InternalError                       // not applied: a 500
	Conflict                            // not applied: another transaction is writing one of the items
	outcomes
)

// Decision is the fate of one attempt.
type Decision struct {
	Outcome Outcome
	// Lag is the earlier state that an index query, or a read that is not consistent, sees.
	Lag Lag
	// ConflictAt is the number of the transaction's write that has the Conflict.
	ConflictAt int
	// Unread is how many keys a batch leaves unread, as a table that throttles does.
	Unread int
}

// Target is an item of a call.
type Target struct{ Table, Key string }

// Call describes one attempt.
type Call struct {
	Operation  string
	Table      string   // of a transaction: of its first write
	Items      []Target // what it reads or writes; none for Query and Scan
	Index      string   // of a query, "" for the table
	Writes     bool
	Consistent bool // a read that sees the latest state
	Attempt    int  // from 1
}

// Client is the SDK's client of one function instance: it repeats failed attempts as package awsclient configures the
// SDK, and returns the SDK's errors. It implements the Client interfaces of the stores. Tasks may share it, one at a
// time.
type Client struct {
	Database *Database
	// Gate decides what happens to an attempt. It may block, and it is where a crashed task ends.
	Gate func(ctx context.Context, call Call) Decision
	// Sleep waits, until the time has passed or ctx ends.
	Sleep func(ctx context.Context, d time.Duration)
	// Late gets the write of an attempt with the outcome AppliedLate. The kernel applies it later, or never.
	Late func(call Call, apply func())

	retryer *retry.Standard
}

// NewClient returns a client whose hooks let every attempt succeed at once. The caller replaces them.
func NewClient(db *Database) *Client {
	return &Client{
		Database: db,
		Gate:     func(context.Context, Call) Decision { return Decision{} },
		Sleep:    func(context.Context, time.Duration) {},
		Late:     func(_ Call, apply func()) { apply() },
		retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = maxAttempts
			o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
				if attempt <= 1 {
					return firstBackoff, nil
				}
				return 3 * firstBackoff, nil
			})
		}),
	}
}

// invoke runs the attempts of a call. It follows the SDK's retry middleware.
func invoke[O any](ctx context.Context, c *Client, call Call, apply func(Decision) (*O, error)) (*O, error) {
	release := func(error) error { return nil }
	for call.Attempt = 1; ; call.Attempt++ {
		if ctx.Err() != nil {
			return nil, operationError(call, ctx.Err())
		}
		releaseAttempt, _ := c.retryer.GetAttemptToken(ctx) // it and the releases never fail
		out, err := attempt(ctx, c, call, apply)
		_, _ = release(err), releaseAttempt(err)
		if err == nil {
			return out, nil
		}
		if _, isCondition := errors.AsType[*types.ConditionalCheckFailedException](err); isCondition ||
			!c.retryer.IsErrorRetryable(err) { // the retryer says the same about a failed condition, but takes longer
			return nil, operationError(call, err)
		}
		if call.Attempt == maxAttempts {
			return nil, operationError(call, &retry.MaxAttemptsError{Attempt: call.Attempt, Err: err})
		}
		var quotaErr error
		if release, quotaErr = c.retryer.GetRetryToken(ctx, err); quotaErr != nil {
			return nil, operationError(call, errors.Join(err, quotaErr))
		}
		delay, _ := c.retryer.RetryDelay(call.Attempt, err)
		c.Sleep(ctx, delay)
		if ctx.Err() != nil {
			return nil, operationError(call, &aws.RequestCanceledError{Err: ctx.Err()})
		}
	}
}

func operationError(call Call, err error) error {
	return &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: call.Operation, Err: err}
}

// attempt runs one attempt. Its error is what the SDK's retry middleware sees.
func attempt[O any](ctx context.Context, c *Client, call Call, apply func(Decision) (*O, error)) (*O, error) {
	decision := c.Gate(ctx, call)
	var out *O
	var err error
	switch decision.Outcome {
	case Applied, AppliedResponseLost, AppliedThenCut, AppliedInternalError:
		if out, err = apply(decision); err != nil {
			err = responseError(http.StatusBadRequest, err)
		}
	case AppliedLate:
		if call.Writes {
			c.Late(call, func() { _, _ = apply(decision) }) // no client sees the result
		}
	}
	switch decision.Outcome {
	case AppliedResponseLost, AppliedLate, NotAppliedTimeout:
		c.Sleep(ctx, attemptTimeout)
		err = newTimeoutError()
	case AppliedThenCut, NotAppliedCut:
		err = newConnectionError()
	case InternalError, AppliedInternalError:
		err = newInternalError()
	case Throttled:
		err = newThrottlingError()
	case Conflict:
		err = newConflictError(call, decision.ConflictAt)
	}
	if ctx.Err() != nil {
		return nil, responseError(0, &smithy.CanceledError{Err: ctx.Err()})
	}
	return out, err
}

type options = func(*dynamodb.Options)

// PutItem implements the client's operation.
func (c *Client) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, _ ...options,
) (*dynamodb.PutItemOutput, error) {
	call := c.newCall(operationPut, in.TableName, in.Item)
	return invoke(ctx, c, call, func(Decision) (*dynamodb.PutItemOutput, error) { return c.Database.PutItem(in) })
}

// GetItem implements the client's operation.
func (c *Client) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, _ ...options,
) (*dynamodb.GetItemOutput, error) {
	call := c.newCall(operationGet, in.TableName, in.Key)
	call.Writes, call.Consistent = false, aws.ToBool(in.ConsistentRead)
	return invoke(ctx, c, call, func(d Decision) (*dynamodb.GetItemOutput, error) {
		return c.Database.GetItem(in, d.Lag)
	})
}

// BatchGetItem implements the client's operation.
func (c *Client) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...options,
) (*dynamodb.BatchGetItemOutput, error) {
	call := Call{Operation: operationGetBatch}
	for name, wanted := range in.RequestItems {
		call.Table, call.Consistent = name, aws.ToBool(wanted.ConsistentRead)
		for _, key := range wanted.Keys {
			call.Items = append(call.Items, c.target(&name, key))
		}
	}
	return invoke(ctx, c, call, func(d Decision) (*dynamodb.BatchGetItemOutput, error) {
		return c.Database.BatchGetItem(in, d.Lag, d.Unread)
	})
}

// UpdateItem implements the client's operation.
func (c *Client) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, _ ...options,
) (*dynamodb.UpdateItemOutput, error) {
	call := c.newCall(operationUpdate, in.TableName, in.Key)
	return invoke(ctx, c, call, func(Decision) (*dynamodb.UpdateItemOutput, error) { return c.Database.UpdateItem(in) })
}

// Query implements the client's operation.
func (c *Client) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...options) (*dynamodb.QueryOutput, error) {
	call := Call{
		Operation: operationQuery, Table: aws.ToString(in.TableName), Index: aws.ToString(in.IndexName),
		Consistent: aws.ToBool(in.ConsistentRead),
	}
	return invoke(ctx, c, call, func(d Decision) (*dynamodb.QueryOutput, error) { return c.Database.Query(in, d.Lag) })
}

// Scan implements the client's operation.
func (c *Client) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...options) (*dynamodb.ScanOutput, error) {
	call := Call{Operation: operationScan, Table: aws.ToString(in.TableName), Consistent: true}
	return invoke(ctx, c, call, func(Decision) (*dynamodb.ScanOutput, error) { return c.Database.Scan(in) })
}

// TransactWriteItems implements the client's operation. All attempts have the same token.
func (c *Client) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...options,
) (*dynamodb.TransactWriteItemsOutput, error) {
	request := *in
	if request.ClientRequestToken == nil {
		request.ClientRequestToken = aws.String(c.Database.newToken())
	}
	call := Call{Operation: operationTransact, Writes: true}
	for _, item := range in.TransactItems {
		call.Items = append(call.Items, c.transactTarget(item))
	}
	if len(call.Items) > 0 {
		call.Table = call.Items[0].Table
	}
	return invoke(ctx, c, call, func(Decision) (*dynamodb.TransactWriteItemsOutput, error) {
		return c.Database.TransactWriteItems(&request)
	})
}

// newCall describes a write of one item.
func (c *Client) newCall(operation string, table *string, item Item) Call {
	target := c.target(table, item)
	return Call{Operation: operation, Table: target.Table, Items: []Target{target}, Writes: true}
}

// target finds the key of an item, "" if the request is invalid.
func (c *Client) target(tableName *string, item Item) Target {
	target := Target{Table: aws.ToString(tableName)}
	if t := c.Database.tables[target.Table]; t != nil {
		if key, isText := item[t.key].(*types.AttributeValueMemberS); isText {
			target.Key = key.Value
		}
	}
	return target
}

func (c *Client) transactTarget(item types.TransactWriteItem) Target {
	switch {
	case item.Put != nil:
		return c.target(item.Put.TableName, item.Put.Item)
	case item.Update != nil:
		return c.target(item.Update.TableName, item.Update.Key)
	}
	return Target{}
}

// String returns a short form for stories.
func (call Call) String() string {
	text := fmt.Sprintf("%s %s", call.Operation, call.Table)
	if call.Index != "" {
		text += " index " + call.Index
	}
	for _, target := range call.Items {
		text += " " + target.Key
	}
	return text
}

// newConflictError returns the error of a write of an item that a transaction is writing. For a transaction with
// several writes, at is the one that met the other transaction.
func newConflictError(call Call, at int) error {
	message := aws.String("Transaction is ongoing for the item")
	if call.Operation != operationTransact {
		return responseError(http.StatusBadRequest, &types.TransactionConflictException{Message: message})
	}
	reasons := make([]types.CancellationReason, len(call.Items))
	for i := range reasons {
		reasons[i] = types.CancellationReason{Code: aws.String("None")}
	}
	reasons[at%len(reasons)] = types.CancellationReason{Code: aws.String("TransactionConflict"), Message: message}
	return responseError(http.StatusBadRequest, cancelledError(reasons))
}
