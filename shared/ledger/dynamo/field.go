package dynamo

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/logsafe"
)

// field maps one field of an entry to one attribute of its item. The type of the field decides the type of the
// attribute: S for a string, N for an integer or a time in milliseconds since 1970, BOOL, B for bytes. A body is a B
// in one of two forms, and encode makes the plain one. Any other type is a document: an S that contains JSON. A later
// version must not add members to a document, because an older version would lose them: it must add an attribute.
type field struct {
	name     string // as stored
	longName string // for people: in errors and in docs/operations.md
	// pointer points to the entry's field.
	pointer func(*entry) any
}

var (
	errOtherType = logsafe.New("of another type than ours")
	errNotJSON   = logsafe.New("not the expected JSON")
	errNotNumber = logsafe.New("not a whole number")
)

// fail names the attribute, and contains no value.
func (f field) fail(err error) error {
	return logsafe.Errorf("attribute %s: %w", logsafe.Name(f.name+" ("+f.longName+")"), err)
}

// encode returns the attribute's value, nil for an empty field: it is not stored.
func (f field) encode(e *entry) (types.AttributeValue, error) {
	pointer := f.pointer(e)
	if isEmpty(pointer) {
		return nil, nil
	}
	switch value := pointer.(type) {
	case *string:
		return dynamoitem.Text(*value), nil
	case *int:
		return dynamoitem.Number(int64(*value)), nil
	case *int64:
		return dynamoitem.Number(*value), nil
	case *time.Time:
		return dynamoitem.Number(value.UnixMilli() / f.unit()), nil
	case *bool:
		return &types.AttributeValueMemberBOOL{Value: *value}, nil
	case *[]byte:
		return &types.AttributeValueMemberB{Value: *value}, nil
	case *packed:
		return &types.AttributeValueMemberB{Value: value.plain()}, nil
	}
	encoded, err := json.Marshal(pointer)
	if err != nil {
		return nil, f.fail(err)
	}
	return dynamoitem.Text(string(encoded)), nil
}

// isEmpty reports whether a field is empty: its type's zero value, or without elements.
func isEmpty(pointer any) bool {
	switch value := pointer.(type) {
	case *string:
		return *value == ""
	case *time.Time:
		return value.IsZero()
	}
	value := reflect.ValueOf(pointer).Elem()
	if value.Kind() == reflect.Slice {
		return value.Len() == 0
	}
	return value.IsZero()
}

// unit is the unit of a time, in milliseconds. The table's time to live needs seconds.
func (f field) unit() int64 {
	if f.name == attributeExpireAt {
		return time.Second.Milliseconds()
	}
	return 1
}

// decode sets the entry's field.
func (f field) decode(e *entry, value types.AttributeValue) error {
	err := errOtherType
	switch value := value.(type) {
	case *types.AttributeValueMemberS:
		err = decodeText(f.pointer(e), value.Value)
	case *types.AttributeValueMemberN:
		err = f.decodeNumber(f.pointer(e), value.Value)
	case *types.AttributeValueMemberBOOL:
		if flag, ok := f.pointer(e).(*bool); ok {
			*flag, err = value.Value, nil
		}
	case *types.AttributeValueMemberB:
		err = decodeBytes(f.pointer(e), value.Value)
	}
	if err != nil {
		return f.fail(err)
	}
	return nil
}

// decodeBytes sets bytes or a body.
func decodeBytes(pointer any, stored []byte) (err error) {
	switch field := pointer.(type) {
	case *[]byte:
		*field = stored
	case *packed:
		*field, err = unpack(stored)
	default:
		err = errOtherType
	}
	return err
}

// decodeText sets a string or a document.
func decodeText(pointer any, text string) error {
	switch field := pointer.(type) {
	case *string:
		*field = text
	case *int, *int64, *time.Time, *bool, *[]byte, *packed:
		return errOtherType
	default:
		if json.Unmarshal([]byte(text), pointer) != nil {
			return errNotJSON
		}
	}
	return nil
}

// decodeNumber sets an integer or a time.
func (f field) decodeNumber(pointer any, text string) error {
	n, err := parseNumber(text)
	switch field := pointer.(type) {
	case *int:
		*field = int(n)
	case *int64:
		*field = n
	case *time.Time:
		*field = time.UnixMilli(n * f.unit()).UTC()
	default:
		return errOtherType
	}
	return err
}

func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errNotNumber
	}
	return n, nil
}
