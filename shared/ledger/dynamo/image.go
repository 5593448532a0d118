package dynamo

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
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

var errImage = errors.New("ledger: not the image of an item")

// imageMap reads an object of named values.
func imageMap(content json.RawMessage, depth int) (map[string]types.AttributeValue, error) {
	var raw map[string]json.RawMessage
	if json.Unmarshal(content, &raw) != nil {
		return nil, errImage
	}
	item := make(map[string]types.AttributeValue, len(raw))
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
	var raw []json.RawMessage
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

// imageValue reads one value: an object with one member, which is named by the value's type.
func imageValue(raw json.RawMessage, depth int) (types.AttributeValue, error) {
	var typed map[string]json.RawMessage
	if depth > maxImageDepth || json.Unmarshal(raw, &typed) != nil || len(typed) != 1 {
		return nil, errImage
	}
	var value types.AttributeValue
	var target any
	for kind, content := range typed {
		switch kind {
		case "S":
			v := &types.AttributeValueMemberS{}
			value, target = v, &v.Value
		case "N":
			v := &types.AttributeValueMemberN{}
			value, target = v, &v.Value
		case "B":
			v := &types.AttributeValueMemberB{}
			value, target = v, &v.Value
		case "BOOL":
			v := &types.AttributeValueMemberBOOL{}
			value, target = v, &v.Value
		case "NULL":
			v := &types.AttributeValueMemberNULL{}
			value, target = v, &v.Value
		case "SS":
			v := &types.AttributeValueMemberSS{}
			value, target = v, &v.Value
		case "NS":
			v := &types.AttributeValueMemberNS{}
			value, target = v, &v.Value
		case "BS":
			v := &types.AttributeValueMemberBS{}
			value, target = v, &v.Value
		case "M":
			members, err := imageMap(content, depth+1)
			return &types.AttributeValueMemberM{Value: members}, err
		case "L":
			items, err := imageList(content, depth+1)
			return &types.AttributeValueMemberL{Value: items}, err
		default:
			return nil, fmt.Errorf("%w: a value of type %.4q", errImage, kind)
		}
		if json.Unmarshal(content, target) != nil {
			return nil, fmt.Errorf("%w: a value of type %s", errImage, kind)
		}
	}
	return value, nil
}
