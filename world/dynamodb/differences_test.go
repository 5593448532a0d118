package dynamodb

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/dynamoitem"
)

// The engines.
const (
	dynoxide  = "Dynoxide"
	reference = "DynamoDB Local"
)

// engineName returns the engine that StartEndpoint uses.
func engineName() string {
	if os.Getenv(dynamotest.ReferenceVariable) != "" {
		return reference
	}
	return dynoxide
}

// difference is where an engine differs from the model, which then follows AWS's documentation, or is less strict. No
// difference changes which writes of the gateway are applied.
type difference struct {
	name   string
	engine string // "" for both
	steps  []step // the last one shows the difference
	want   string // the engine's result
	got    string // the model's result
	// forgives, if set, reports whether two results of a random step are this difference.
	forgives func(s step, want, got string) bool
}

const invalid = "ValidationException"

func put1(condition string, values Item) types.TransactWriteItem {
	p := &types.Put{TableName: aws.String("ledger"), Item: dynamoitem.Key("pay#1"), ExpressionAttributeValues: values}
	if condition != "" {
		p.ConditionExpression = aws.String(condition)
	}
	return types.TransactWriteItem{Put: p}
}

func update1(update string, values Item) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String("ledger"), Key: dynamoitem.Key("pay#1"), UpdateExpression: aws.String(update),
		ExpressionAttributeValues: values,
	}}
}

func transact(items ...types.TransactWriteItem) step {
	return transactStep(&dynamodb.TransactWriteItemsInput{TransactItems: items})
}

// withToken makes a transaction that a caller gave a token.
func withToken(item types.TransactWriteItem) step {
	return transactStep(&dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{item}, ClientRequestToken: aws.String("token"),
	})
}

func transactStep(in *dynamodb.TransactWriteItemsInput) step {
	return step{"transact", func(ctx context.Context, e engine) string {
		_, err := e.TransactWriteItems(ctx, in)
		return describe(err)
	}}
}

var one = Item{":value": dynamoitem.Number(1)}

var differences = []difference{
	{
		name:  "an invalid write in a transaction is a reason of the cancellation",
		steps: []step{transact(update1("SET pk = :value", Item{":value": dynamoitem.Text("b")}))}, engine: reference,
		want: "TransactionCanceledException ValidationError", got: invalid,
		forgives: transactValidation,
	},
	{
		name:  "a transaction may update a key or one attribute twice",
		steps: []step{transact(update1("SET pk = :value", Item{":value": dynamoitem.Text("b")}))}, engine: dynoxide,
		want: "none", got: invalid,
	},
	{
		name:  "an undefined value in a transaction is a reason of the cancellation",
		steps: []step{transact(put1("v = :undefined", nil))}, engine: dynoxide,
		want: "TransactionCanceledException ValidationError", got: invalid,
		forgives: transactValidation,
	},
	{
		name:   "a false condition is reported before another fault of the request",
		steps:  []step{transact(put1("v = :value", Item{":value": one[":value"], ":unused": one[":value"]}))},
		engine: dynoxide,
		want:   "TransactionCanceledException ConditionalCheckFailed", got: invalid,
		forgives: func(_ step, want, got string) bool {
			return strings.Contains(want, "ConditionalCheckFailed") && got == invalid
		},
	},
	{
		name:  "the model has no reserved words",
		steps: []step{transact(put1("status = :value OR attribute_not_exists(pk)", one))}, engine: reference,
		want: invalid, got: "none",
	},
	{
		name:  "two writes of one item are one reason",
		steps: []step{transact(put1("", nil), put1("attribute_not_exists(pk)", nil))}, engine: reference,
		want: "TransactionCanceledException None ConditionalCheckFailed", got: invalid,
	},
	{
		name:  "the model does not compare a repeated transaction with the first",
		steps: []step{withToken(put1("", nil)), withToken(update1("SET v = :value", one))}, engine: reference,
		want: "IdempotentParameterMismatchException", got: "none",
	},
}

// transactValidation reports whether both refuse a transaction as invalid, in different ways.
func transactValidation(s step, want, got string) bool {
	return strings.HasPrefix(s.text, "transact") && got == invalid && strings.Contains(want, " ValidationError")
}

// isKnownDifference reports whether results of a random step are a listed difference.
func isKnownDifference(s step, want, got string) bool {
	for _, d := range differences {
		if d.engine == engineName() && d.forgives != nil && d.forgives(s, want, got) {
			return true
		}
	}
	return false
}

// TestDifferences shows each listed difference, so that one that has gone leaves the list.
func TestDifferences(t *testing.T) {
	client := newEndpointClient(t)
	for _, d := range differences {
		if d.engine != engineName() {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			empty(t, client)
			model := newModel(t)
			var want, got string
			for _, s := range d.steps {
				want, got = s.run(t, client), s.run(t, model)
			}
			if want != d.want || got != d.got {
				t.Fatalf("engine: %s\nmodel:  %s\nlisted: %s\n        %s", want, got, d.want, d.got)
			}
		})
	}
}
