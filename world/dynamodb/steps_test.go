package dynamodb

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"mobilegateway/shared/dynamoitem"
)

// step is one operation of a sequence.
type step struct {
	text string
	call func(ctx context.Context, e engine) string
}

// run runs the step. A request that the model refuses is the engines' ValidationException.
func (s step) run(t rapid.TB, e engine) (result string) {
	t.Helper()
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case invalidRequest:
			result = invalid
		default:
			panic(failure)
		}
	}()
	return s.call(context.Background(), e)
}

// sequenceLength is the number of operations of a sequence, before it is shrunk.
const sequenceLength = 30

// sequence is what rapid prints.
type sequence []step

func (s sequence) GoString() string {
	text := ""
	for i, one := range s {
		text += fmt.Sprintf("\n%2d. %s", i, one.text)
	}
	return text
}

func drawSteps(t *rapid.T) sequence {
	var steps sequence
	for range sequenceLength {
		if s := drawStep(t); s.call != nil {
			steps = append(steps, s)
		}
	}
	return steps
}

// drawStep draws an operation. The first kind, to which rapid shrinks, is none.
func drawStep(t *rapid.T) step {
	kinds := []func(*rapid.T) step{
		func(*rapid.T) step { return step{} },
		drawPut, drawPut, drawPut, drawUpdate, drawUpdate, drawDelete,
		drawGet, drawGetBatch, drawQuery, drawQuery, drawScan, drawTransact, drawTransact,
	}
	return rapid.SampledFrom(kinds).Draw(t, "kind")(t)
}

func text(value string) types.AttributeValue { return dynamoitem.Text(value) }

func drawNumber(t *rapid.T) types.AttributeValue {
	return dynamoitem.Number(rapid.Int64Range(-1, 4).Draw(t, "number"))
}

func drawKey(t *rapid.T, table string) string {
	return rapid.SampledFrom(keysByTable[table]).Draw(t, "key")
}

func drawTable(t *rapid.T) string {
	return rapid.SampledFrom([]string{"ledger", "limits"}).Draw(t, "table")
}

// rarely is true for one of twenty draws.
func rarely(t *rapid.T) bool { return rapid.IntRange(0, 19).Draw(t, "rarely") == 19 }

// drawItem draws an item with some of the attributes that indexes, conditions and updates use.
func drawItem(t *rapid.T, table string) Item {
	item := dynamoitem.Key(drawKey(t, table))
	oneOf := func(choices ...string) func() types.AttributeValue {
		return func() types.AttributeValue { return text(rapid.SampledFrom(choices).Draw(t, "text")) }
	}
	number := func() types.AttributeValue { return drawNumber(t) }
	values := map[string]func() types.AttributeValue{
		"v": number, "expire_at": number, "da": number, "spent": number,
		"ci": oneOf("a", "b"), "ds": oneOf("0", "1"), "md": oneOf("m#1"), "dk": oneOf("10", "9", "é"),
		"status": oneOf("", "é<&>"),
		"flag": func() types.AttributeValue {
			return &types.AttributeValueMemberBOOL{Value: rapid.Bool().Draw(t, "flag")}
		},
		"body": func() types.AttributeValue {
			return &types.AttributeValueMemberB{Value: rapid.SliceOfN(rapid.Byte(), 1, 3).Draw(t, "body")}
		},
	}
	for _, name := range []string{"v", "expire_at", "ci", "ds", "da", "md", "dk", "spent", "flag", "body", "status"} {
		if rapid.Bool().Draw(t, "has "+name) {
			item[name] = values[name]()
		}
	}
	if rarely(t) {
		invalid := []Item{
			{"ds": dynamoitem.Number(1)}, {"ds": text("")}, {"da": text("1")},
			{"pk": text("")}, {"pk": dynamoitem.Number(1)}, {"dk": text("")},
			{"v": &types.AttributeValueMemberN{Value: "x"}},
		}
		for name, value := range rapid.SampledFrom(invalid).Draw(t, "invalid") {
			item[name] = value
		}
	}
	return item
}

// conditionText is a condition, the names that it needs, and its number of values.
type conditionText struct {
	text   string
	names  map[string]string
	values []string
}

// conditions are those of the stores, and some that reach the rest of the grammar.
var conditions = []conditionText{
	{text: ""},
	{text: "attribute_not_exists(pk) OR expire_at <= :value", values: []string{":value"}},
	{text: "v = :value", values: []string{":value"}},
	{text: "attribute_not_exists(pk) OR ci = :text", values: []string{":text"}},
	{text: "attribute_not_exists(pk)"},
	{text: "attribute_not_exists(pk) OR #v = :value", names: map[string]string{"#v": "v"}, values: []string{":value"}},
	{text: "#s = :text AND #v = :value", names: map[string]string{"#s": "status", "#v": "v"},
		values: []string{":text", ":value"}},
	{text: "spent BETWEEN :value AND :most", values: []string{":value", ":most"}},
	{text: "attribute_not_exists(spent) OR spent BETWEEN :value AND :most", values: []string{":value", ":most"}},
	{text: "attribute_not_exists(spent) OR spent <= :most", values: []string{":most"}},
	{text: "spent >= :most", values: []string{":most"}},
	{text: "attribute_not_exists(v) OR spent = :value AND expire_at <= :most", values: []string{":value", ":most"}},
	{text: "v = :value and (flag = :flag or ci < :text)", values: []string{":value", ":flag", ":text"}},
	{text: "attribute_not_exists(ds) AND begins_with(ci, :text)", values: []string{":text"}},
	{text: "v > da OR :value = spent", values: []string{":value"}},
	{text: "v BETWEEN spent AND expire_at"},
}

// invalidConditions are refused by every engine.
var invalidConditions = []conditionText{
	{text: "v = :undefined"},
	{text: "#undefined = :value", values: []string{":value"}},
	{text: "v = :value", values: []string{":value", ":unused"}},
	{text: "v = :value", names: map[string]string{"#unused": "v"}, values: []string{":value"}},
	{text: "v = :value AND", values: []string{":value"}},
	{text: "(v = :value", values: []string{":value"}},
	{text: "v ! :value", values: []string{":value"}},
	{text: "v = :value ci", values: []string{":value"}},
	{text: "v BETWEEN :text AND :value", values: []string{":text", ":value"}},
	{text: "v BETWEEN :one AND :zero", values: []string{":one", ":zero"}},
}

// drawCondition draws a condition, its names and its values.
func drawCondition(t *rapid.T) (expression *string, names map[string]string, values Item) {
	c := rapid.SampledFrom(conditions).Draw(t, "condition")
	if rarely(t) {
		c = rapid.SampledFrom(invalidConditions).Draw(t, "invalid condition")
	}
	if c.text == "" {
		return nil, nil, nil
	}
	if len(c.values) > 0 {
		values = Item{}
	}
	for _, name := range c.values {
		switch name {
		case ":text":
			values[name] = text(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "text"))
		case ":flag":
			values[name] = &types.AttributeValueMemberBOOL{Value: rapid.Bool().Draw(t, "flag")}
		case ":zero":
			values[name] = dynamoitem.Number(0)
		case ":one":
			values[name] = dynamoitem.Number(1)
		default:
			values[name] = drawNumber(t)
		}
	}
	// Reversed bounds are an invalid condition.
	if order, both := compareValues(values[":value"], values[":most"]); both && order > 0 {
		values[":value"], values[":most"] = values[":most"], values[":value"]
	}
	return aws.String(c.text), c.names, values
}

func drawFailureValues(t *rapid.T) types.ReturnValuesOnConditionCheckFailure {
	if rapid.Bool().Draw(t, "without item") {
		return types.ReturnValuesOnConditionCheckFailureNone
	}
	return types.ReturnValuesOnConditionCheckFailureAllOld
}

func drawPutOf(t *rapid.T) *types.Put {
	table := drawTable(t)
	p := &types.Put{
		TableName: aws.String(table), Item: drawItem(t, table),
		ReturnValuesOnConditionCheckFailure: drawFailureValues(t),
	}
	p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues = drawCondition(t)
	return p
}

func putText(p *types.Put) string {
	return fmt.Sprintf("put %s %s if %q %v %s", *p.TableName, image(p.Item), aws.ToString(p.ConditionExpression),
		p.ExpressionAttributeNames, image(p.ExpressionAttributeValues))
}

func drawPut(t *rapid.T) step {
	p := drawPutOf(t)
	input := &dynamodb.PutItemInput{
		TableName: p.TableName, Item: p.Item, ConditionExpression: p.ConditionExpression,
		ExpressionAttributeNames: p.ExpressionAttributeNames, ExpressionAttributeValues: p.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: p.ReturnValuesOnConditionCheckFailure,
	}
	return step{putText(p), func(ctx context.Context, e engine) string {
		_, err := e.PutItem(ctx, input)
		return describe(err)
	}}
}

// updates are the update expressions of the stores, and some more. ":by" and ":expire" are numbers.
var updates = []struct {
	text   string
	values []string
}{
	{"SET spent = :by, expire_at = :expire", []string{":by", ":expire"}},
	{"SET spent = spent + :by, expire_at = :expire", []string{":by", ":expire"}},
	{"SET spent = if_not_exists(spent, :expire) + :by, expire_at = :expire", []string{":by", ":expire"}},
	{"set v = spent, spent = v", nil},
	{"SET ds = ci, da = :by", []string{":by"}},
	{"SET v = ci + :by", []string{":by"}},
}

// invalidUpdates are refused by every engine. Some only if the item has the attribute.
var invalidUpdates = []string{
	"SET spent :by", "SET ds = :by", "SET spent = :by SET v = :by",
}

// singleUpdates are refused by every engine. Dynoxide accepts them in a transaction.
var singleUpdates = []string{"SET pk = :by", "SET spent = :by, spent = :by"}

func drawUpdateOf(t *rapid.T, refused []string) *types.Update {
	table := drawTable(t)
	u := &types.Update{
		TableName: aws.String(table), Key: dynamoitem.Key(drawKey(t, table)),
		ReturnValuesOnConditionCheckFailure: drawFailureValues(t),
	}
	u.ConditionExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues = drawCondition(t)
	update := rapid.SampledFrom(updates).Draw(t, "update")
	u.UpdateExpression = aws.String(update.text)
	if rarely(t) {
		u.ConditionExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues = nil, nil, nil
		u.UpdateExpression = aws.String(rapid.SampledFrom(refused).Draw(t, "invalid update"))
		update.values = []string{":by"}
	}
	for _, name := range update.values {
		if u.ExpressionAttributeValues == nil {
			u.ExpressionAttributeValues = Item{}
		}
		u.ExpressionAttributeValues[name] = drawNumber(t)
	}
	if rarely(t) {
		keys := []Item{{"pk": text("")}, {"pk": text("a"), "v": text("b")}, {"v": text("b")}}
		u.Key = rapid.SampledFrom(keys).Draw(t, "invalid key")
	}
	return u
}

func updateText(u *types.Update) string {
	return fmt.Sprintf("update %s %s: %s if %q %v %s", *u.TableName, image(u.Key), *u.UpdateExpression,
		aws.ToString(u.ConditionExpression), u.ExpressionAttributeNames, image(u.ExpressionAttributeValues))
}

func drawUpdate(t *rapid.T) step {
	u := drawUpdateOf(t, append(singleUpdates, invalidUpdates...))
	input := &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key,
		ConditionExpression: u.ConditionExpression, UpdateExpression: u.UpdateExpression,
		ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
	}
	if rapid.Bool().Draw(t, "returns") {
		input.ReturnValues = types.ReturnValueUpdatedNew
	}
	return step{updateText(u) + " returns " + string(input.ReturnValues), func(ctx context.Context, e engine) string {
		out, err := e.UpdateItem(ctx, input)
		if err != nil {
			return describe(err)
		}
		return image(out.Attributes)
	}}
}

// deleteStep deletes an item without a condition.
func deleteStep(table, key string) step {
	input := &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: dynamoitem.Key(key)}
	return step{"delete " + table + " " + key, func(ctx context.Context, e engine) string {
		if model, isModel := e.(*Client); isModel {
			_, err := model.Database.DeleteItem(input)
			return describe(err)
		}
		_, err := e.(*dynamodb.Client).DeleteItem(ctx, input)
		return describe(err)
	}}
}

func drawDelete(t *rapid.T) step {
	table := drawTable(t)
	return deleteStep(table, drawKey(t, table))
}

// drawTransact draws a transaction. Its writes have different keys.
func drawTransact(t *rapid.T) step {
	var items []types.TransactWriteItem
	var texts []string
	seen := map[Target]bool{}
	model := newModel(t)
	add := func(item types.TransactWriteItem, text string) {
		if target := model.transactTarget(item); !seen[target] {
			seen[target] = true
			items, texts = append(items, item), append(texts, text)
		}
	}
	for range rapid.IntRange(1, 3).Draw(t, "writes") {
		if rapid.Bool().Draw(t, "put") {
			put := drawPutOf(t)
			add(types.TransactWriteItem{Put: put}, putText(put))
		} else {
			update := drawUpdateOf(t, invalidUpdates)
			add(types.TransactWriteItem{Update: update}, updateText(update))
		}
	}
	return step{"transact " + strings.Join(texts, "; "), func(ctx context.Context, e engine) string {
		_, err := e.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
		return describe(err)
	}}
}
