package dynamo

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
)

// maxImageDepth bounds how deep a stream's image may nest. Ours nests nowhere; a later version's attributes might.
const maxImageDepth = 32

// DecodeImage reads an entry from the JSON image of a stream record, as a stream's event carries it:
// {"pk":{"S":"pay#..."},"version":{"N":"2"},...}. An image that is not such JSON, or holds no entry, is an error without any value
// in its text.
func DecodeImage(image []byte) (*ledger.Entry, error) {
	var raw map[string]json.RawMessage
	if json.Unmarshal(image, &raw) != nil {
		return nil, errImage
	}
	item, err := imageMap(raw, 0)
	if err != nil {
		return nil, err
	}
	return Decode(item)
}

var errImage = errors.New("ledger: not the image of an item")

func imageMap(raw map[string]json.RawMessage, depth int) (map[string]types.AttributeValue, error) {
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

// imageValue reads one value, which is an object with its type's letters as the only name.
func imageValue(raw json.RawMessage, depth int) (types.AttributeValue, error) {
	var value map[string]json.RawMessage
	if depth > maxImageDepth || json.Unmarshal(raw, &value) != nil || len(value) != 1 {
		return nil, errImage
	}
	for letters, content := range value {
		decoded, err := imageContent(letters, content, depth)
		if err != nil {
			return nil, fmt.Errorf("%w: a value of type %.4q", err, letters)
		}
		return decoded, nil
	}
	return nil, errImage
}

// imageContent reads what stands behind a type's letters.
func imageContent(letters string, content json.RawMessage, depth int) (types.AttributeValue, error) {
	switch letters {
	case "S":
		s, err := read[string](content)
		return &types.AttributeValueMemberS{Value: s}, err
	case "N":
		n, err := read[string](content)
		return &types.AttributeValueMemberN{Value: n}, err
	case "B":
		b, err := read[[]byte](content)
		return &types.AttributeValueMemberB{Value: b}, err
	case "BOOL":
		b, err := read[bool](content)
		return &types.AttributeValueMemberBOOL{Value: b}, err
	case "NULL":
		b, err := read[bool](content)
		return &types.AttributeValueMemberNULL{Value: b}, err
	case "SS":
		set, err := read[[]string](content)
		return &types.AttributeValueMemberSS{Value: set}, err
	case "NS":
		set, err := read[[]string](content)
		return &types.AttributeValueMemberNS{Value: set}, err
	case "BS":
		set, err := read[[][]byte](content)
		return &types.AttributeValueMemberBS{Value: set}, err
	case "M":
		return imageMapValue(content, depth)
	case "L":
		return imageListValue(content, depth)
	default:
		return nil, errImage
	}
}

func imageMapValue(content json.RawMessage, depth int) (types.AttributeValue, error) {
	raw, err := read[map[string]json.RawMessage](content)
	if err != nil {
		return nil, err
	}
	members, err := imageMap(raw, depth+1)
	return &types.AttributeValueMemberM{Value: members}, err
}

func imageListValue(content json.RawMessage, depth int) (types.AttributeValue, error) {
	raw, err := read[[]json.RawMessage](content)
	if err != nil {
		return nil, err
	}
	items := make([]types.AttributeValue, 0, len(raw))
	for _, element := range raw {
		item, err := imageValue(element, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return &types.AttributeValueMemberL{Value: items}, nil
}

func read[T any](content json.RawMessage) (T, error) {
	var value T
	if json.Unmarshal(content, &value) != nil {
		return value, errImage
	}
	return value, nil
}
