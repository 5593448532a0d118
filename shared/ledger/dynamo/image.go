package dynamo

import (
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
)

// maxImageDepth bounds the nesting of a stream's image. Our attributes do not nest; those of a later version may.
const maxImageDepth = 32

// DecodeImage reads an entry from the JSON image in a stream record: {"pk":{"S":"pay#..."},"v":{"N":"2"},...}. Other
// JSON, and an image without an entry, are errors whose texts contain no value.
func DecodeImage(image []byte) (*ledger.Entry, error) {
	item, err := imageMap(image, 0)
	if err != nil {
		return nil, err
	}
	return Decode(item)
}

var errImage = logsafe.New("ledger: not the image of an item")

// imageMap reads an object of named values.
func imageMap(content json.RawMessage, depth int) (item, error) {
	var raw map[string]typedValue
	if json.Unmarshal(content, &raw) != nil {
		return nil, errImage
	}
	item := make(item, len(raw))
	for name, value := range raw {
		decoded, err := imageValue(value, depth)
		if err != nil {
			return nil, err
		}
		item[name] = decoded
	}
	return item, nil
}

// imageList reads an array of values.
func imageList(content json.RawMessage, depth int) ([]types.AttributeValue, error) {
	var raw []typedValue
	if json.Unmarshal(content, &raw) != nil {
		return nil, errImage
	}
	items := make([]types.AttributeValue, len(raw))
	for i, element := range raw {
		item, err := imageValue(element, depth)
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	return items, nil
}

// typedValue is one value of an image: an object with one member, which is named by the value's type.
type typedValue map[string]json.RawMessage

// imageValue reads one value.
func imageValue(typed typedValue, depth int) (types.AttributeValue, error) {
	if depth > maxImageDepth || len(typed) != 1 {
		return nil, errImage
	}
	for kind, content := range typed {
		switch decode := scalarTypes[kind]; {
		case decode != nil:
			return decode(content)
		case kind == "M":
			members, err := imageMap(content, depth+1)
			return &types.AttributeValueMemberM{Value: members}, err
		case kind == "L":
			items, err := imageList(content, depth+1)
			return &types.AttributeValueMemberL{Value: items}, err
		default:
			return nil, logsafe.Errorf("%w: a value of type %.4q", errImage, kind)
		}
	}
	return nil, errImage
}

// scalarTypes decode the values that contain no other values, by their type.
var scalarTypes = map[string]func(json.RawMessage) (types.AttributeValue, error){
	"S":    scalar(func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }),
	"N":    scalar(func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }),
	"B":    scalar(func(v []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: v} }),
	"BOOL": scalar(func(v bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: v} }),
	"NULL": scalar(func(v bool) types.AttributeValue { return &types.AttributeValueMemberNULL{Value: v} }),
	"SS":   scalar(func(v []string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: v} }),
	"NS":   scalar(func(v []string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: v} }),
	"BS":   scalar(func(v [][]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: v} }),
}

// scalar returns the decoder of one type of values.
func scalar[T any](wrap func(T) types.AttributeValue) func(json.RawMessage) (types.AttributeValue, error) {
	return func(content json.RawMessage) (types.AttributeValue, error) {
		var value T
		if json.Unmarshal(content, &value) != nil {
			return nil, logsafe.Errorf("%w: a value of type %s", errImage, logsafe.TypeOf(value))
		}
		return wrap(value), nil
	}
}
