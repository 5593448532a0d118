package dynamodb

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item, the key of one, or a set of named values.
type Item = map[string]types.AttributeValue

// maxItemBytes is the service's limit of an item's size.
const maxItemBytes = 400 << 10

// checkValues returns the size of an item as DynamoDB counts it, or a little less, and the names of its binary
// attributes. An invalid number is a ValidationException.
func checkValues(item Item) (bytes int, binary []string, err error) {
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
			if _, err := parseNumber(v.Value); err != nil {
				return 0, nil, err
			}
		default:
			notModelled("attribute %s has the type %T", name, value)
		}
	}
	return bytes, binary, nil
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

// appendItemJSON appends an item in DynamoDB's JSON, its attributes sorted by name.
func appendItemJSON(to []byte, item Item) []byte {
	to = append(to, '{')
	for i, name := range slices.Sorted(maps.Keys(item)) {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendText(to, name), ':')
		to = appendValueJSON(to, item[name])
	}
	return append(to, '}')
}

func appendValueJSON(to []byte, value types.AttributeValue) []byte {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		to = appendText(append(to, `{"S":`...), v.Value)
	case *types.AttributeValueMemberN:
		to = appendText(append(to, `{"N":`...), v.Value)
	case *types.AttributeValueMemberB:
		to = appendText(append(to, `{"B":`...), base64.StdEncoding.EncodeToString(v.Value))
	case *types.AttributeValueMemberBOOL:
		to = fmt.Appendf(to, `{"BOOL":%t`, v.Value)
	}
	return append(to, '}')
}

// appendText appends a text in JSON. Most texts need no escape.
func appendText(to []byte, text string) []byte {
	if !strings.ContainsFunc(text, needsEscape) {
		return append(append(append(to, '"'), text...), '"')
	}
	encoded, _ := json.Marshal(text) // no text fails
	return append(to, encoded...)
}

// needsEscape reports whether encoding/json might write a character in another form.
func needsEscape(r rune) bool {
	return r < ' ' || r > '~' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&'
}
