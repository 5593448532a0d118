package dynamodb

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxTransactItems is the service's limit.
const maxTransactItems = 100

// write is one validated write, alone or of a transaction.
type write struct {
	table     *table
	key       string
	condition *expression
	scope     *scope
	returnOld bool // in the error of a failed condition
	// compute returns the item's next version, nil for none.
	compute func(old Item) *stored
	changed []string // the attributes that an update names
}

// newWrite checks the parts that all writes have. For a put, in.Key is the whole item, and exactKey is false. update is
// nil for a write without one.
func (db *Database) newWrite(in *types.Update, exactKey bool) (w *write, update *expression) {
	failedItem := types.ReturnValuesOnConditionCheckFailureAllOld
	s, expressions := db.bind(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		source{kindCondition, in.ConditionExpression}, source{kindUpdate, in.UpdateExpression})
	w = &write{
		table: db.table(in.TableName), scope: s, condition: expressions[0],
		returnOld: in.ReturnValuesOnConditionCheckFailure == failedItem,
	}
	w.key = w.table.keyValue(in.Key, exactKey)
	return w, expressions[1]
}

func (db *Database) newPut(p *types.Put) *write {
	w, _ := db.newWrite(&types.Update{
		TableName: p.TableName, Key: p.Item, ConditionExpression: p.ConditionExpression,
		ExpressionAttributeNames: p.ExpressionAttributeNames, ExpressionAttributeValues: p.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: p.ReturnValuesOnConditionCheckFailure,
	}, false)
	version := w.table.newStored(w.key, p.Item)
	w.compute = func(Item) *stored { return version }
	return w
}

func (db *Database) newUpdate(u *types.Update) *write {
	w, update := db.newWrite(u, true)
	if update == nil {
		update = &expression{}
	}
	update.checkUpdates(w.scope, w.table.key)
	w.compute = func(old Item) *stored {
		next, changed := update.update(w.scope, old, u.Key)
		w.changed = changed
		return w.table.newStored(w.key, next)
	}
	return w
}

// evaluate checks the condition and computes the next version. A false condition is a
// *types.ConditionalCheckFailedException.
func (w *write) evaluate() (*stored, error) {
	old := w.table.items[w.key]
	if !w.condition.matches(w.scope, old.itemOrNil()) {
		failed := &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed")}
		if w.returnOld {
			failed.Item = old.copy()
		}
		return nil, failed
	}
	return w.compute(old.itemOrNil()), nil
}

// apply performs a single write and returns the item's new version.
func (db *Database) apply(w *write) (*stored, error) {
	next, err := w.evaluate()
	if err == nil {
		db.commit(w.table, w.key, next)
	}
	return next, err
}

// PutItem implements the operation.
func (db *Database) PutItem(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	w := db.newPut(&types.Put{
		TableName: in.TableName, Item: in.Item, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	refuseReturnValues(in.ReturnValues)
	if _, err := db.apply(w); err != nil {
		return nil, err
	}
	return &dynamodb.PutItemOutput{}, nil
}

// UpdateItem implements the operation. It can return the new values of the attributes that it changed.
func (db *Database) UpdateItem(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	w := db.newUpdate(&types.Update{
		TableName: in.TableName, Key: in.Key,
		ConditionExpression: in.ConditionExpression, UpdateExpression: in.UpdateExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	next, err := db.apply(w)
	if err != nil {
		return nil, err
	}
	if in.ReturnValues == types.ReturnValueUpdatedNew {
		return &dynamodb.UpdateItemOutput{Attributes: next.selected(w.changed)}, nil
	}
	refuseReturnValues(in.ReturnValues)
	return &dynamodb.UpdateItemOutput{}, nil
}

// DeleteItem implements the operation, without a condition.
func (db *Database) DeleteItem(in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
	if in.ConditionExpression != nil {
		notModelled("the condition of a deletion")
	}
	refuseReturnValues(in.ReturnValues)
	w, _ := db.newWrite(&types.Update{TableName: in.TableName, Key: in.Key}, true)
	db.commit(w.table, w.key, nil)
	return &dynamodb.DeleteItemOutput{}, nil
}

func refuseReturnValues(want types.ReturnValue) {
	if want != "" && want != types.ReturnValueNone {
		notModelled("the returned values %s", want)
	}
}

// TransactWriteItems implements the operation. A repeat with the token of an applied transaction succeeds without
// effect for ten minutes. The model does not compare the repeated request with the first one.
func (db *Database) TransactWriteItems(
	in *dynamodb.TransactWriteItemsInput,
) (*dynamodb.TransactWriteItemsOutput, error) {
	if len(in.TransactItems) == 0 || len(in.TransactItems) > maxTransactItems {
		refuse("a transaction of %d writes", len(in.TransactItems))
	}
	writes := make([]*write, len(in.TransactItems))
	for i, item := range in.TransactItems {
		w := db.newTransactWrite(item)
		for _, earlier := range writes[:i] {
			if earlier.table == w.table && earlier.key == w.key {
				refuse("a transaction with two writes of %s", w.key)
			}
		}
		writes[i] = w
	}
	if db.isRepeated(in.ClientRequestToken) {
		return &dynamodb.TransactWriteItemsOutput{}, nil
	}
	versions := make([]*stored, len(writes))
	reasons := make([]types.CancellationReason, len(writes))
	cancelled := false
	for i, w := range writes {
		next, err := w.evaluate()
		versions[i], reasons[i] = next, cancellationReason(err)
		cancelled = cancelled || err != nil
	}
	if cancelled {
		return nil, cancelledError(reasons)
	}
	for i, w := range writes {
		db.commit(w.table, w.key, versions[i])
	}
	db.rememberToken(in.ClientRequestToken)
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (db *Database) newTransactWrite(item types.TransactWriteItem) *write {
	switch {
	case item.Put != nil:
		return db.newPut(item.Put)
	case item.Update != nil:
		return db.newUpdate(item.Update)
	case item.Delete != nil, item.ConditionCheck != nil:
		notModelled("a deletion or a condition check in a transaction")
	}
	refuse("a transaction with a write of no kind")
	return nil
}

// cancellationReason describes the outcome of one write of a transaction.
func cancellationReason(err error) types.CancellationReason {
	failure, failed := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !failed {
		return types.CancellationReason{Code: aws.String("None")}
	}
	return types.CancellationReason{
		Code: aws.String("ConditionalCheckFailed"), Message: failure.Message, Item: failure.Item,
	}
}
