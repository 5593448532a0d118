package dynamodb

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item, the key of one, or a set of named values.
type Item = map[string]types.AttributeValue

// maxItemBytes is the service's limit of an item's size.
const maxItemBytes = 400 << 10

// checkValues returns the size of an item as DynamoDB counts it, or a little less, and the names of its binary
// attributes. It refuses an invalid number.
func checkValues(item Item) (bytes int, binary []string) {
	for name, value := range item {
		bytes += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			bytes += len(v.Value)
		case *types.AttributeValueMemberB:
			bytes += len(v.Value)
			binary = append(binary, name)
		case *types.AttributeValueMemberBOOL:
			bytes++
		case *types.AttributeValueMemberN:
			bytes += (len(v.Value)+1)/2 + 1
			parseNumber(v.Value)
		default:
			notModelled("attribute %s has the type %T", name, value)
		}
	}
	return bytes, binary
}

// equalValues reports whether two values have the same type and content.
func equalValues(a, b types.AttributeValue) bool {
	if x, isFlag := a.(*types.AttributeValueMemberBOOL); isFlag {
		y, same := b.(*types.AttributeValueMemberBOOL)
		return same && x.Value == y.Value
	}
	order, comparable := compareValues(a, b)
	return comparable && order == 0
}

// compareValues compares two texts, numbers or byte sequences. comparable is false for other or different types.
func compareValues(a, b types.AttributeValue) (order int, comparable bool) {
	switch x := a.(type) {
	case *types.AttributeValueMemberS:
		if y, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(x.Value, y.Value), true
		}
	case *types.AttributeValueMemberN:
		if y, same := b.(*types.AttributeValueMemberN); same {
			return compareNumbers(x.Value, y.Value), true
		}
	case *types.AttributeValueMemberB:
		if y, same := b.(*types.AttributeValueMemberB); same {
			return bytes.Compare(x.Value, y.Value), true
		}
	}
	return 0, false
}

// hasPrefix implements begins_with for texts.
func hasPrefix(value, prefix types.AttributeValue) bool {
	text, isText := value.(*types.AttributeValueMemberS)
	start, startIsText := prefix.(*types.AttributeValueMemberS)
	return isText && startIsText && strings.HasPrefix(text.Value, start.Value)
}

// ItemJSON returns an item in DynamoDB's JSON, its attributes sorted by name.
func ItemJSON(item Item) []byte {
	values := make(map[string]typedValue, len(item))
	for name, value := range item {
		values[name] = newTypedValue(value)
	}
	text, _ := json.Marshal(values) // texts, byte sequences and flags always marshal
	return text
}

// typedValue is a value under the name of its type, as DynamoDB's JSON has it. The others are nil.
type typedValue struct {
	S    *string `json:",omitempty"`
	N    *string `json:",omitempty"`
	B    *[]byte `json:",omitempty"`
	BOOL *bool   `json:",omitempty"`
}

func newTypedValue(value types.AttributeValue) typedValue {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return typedValue{S: &v.Value}
	case *types.AttributeValueMemberN:
		return typedValue{N: &v.Value}
	case *types.AttributeValueMemberB:
		return typedValue{B: &v.Value}
	case *types.AttributeValueMemberBOOL:
		return typedValue{BOOL: &v.Value}
	}
	return typedValue{}
}
