package dynamo

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
)

// field maps one field of an entry to one attribute of its item. encode returns nil for an empty field: it is not
// stored.
type field struct {
	name     string // as stored
	longName string // for people: in errors and in docs/operations.md
	encode   func(*entry) (types.AttributeValue, error)
	decode   func(*entry, types.AttributeValue) error
}

// newField makes a field whose attribute has the type V. Errors name the attribute and contain no value.
func newField[T any, V types.AttributeValue](
	name, longName string, at func(*entry) *T, empty func(T) bool,
	encode func(T) (types.AttributeValue, error), decode func(V) (T, error),
) field {
	return field{
		name:     name,
		longName: longName,
		encode: func(e *entry) (types.AttributeValue, error) {
			if empty(*at(e)) {
				return nil, nil
			}
			value, err := encode(*at(e))
			if err != nil {
				return nil, fmt.Errorf("attribute %s (%s): %w", name, longName, err)
			}
			return value, nil
		},
		decode: func(e *entry, value types.AttributeValue) error {
			typed, ok := value.(V)
			if !ok {
				return fmt.Errorf("attribute %s (%s) has another type than ours", name, longName)
			}
			decoded, err := decode(typed)
			if err != nil {
				return fmt.Errorf("attribute %s (%s): %w", name, longName, err)
			}
			*at(e) = decoded
			return nil
		},
	}
}

// text is a field of type S.
func text[T ~string](name, longName string, at func(*entry) *T) field {
	return newField(name, longName, at, isZero,
		func(text T) (types.AttributeValue, error) { return dynamoitem.Text(string(text)), nil },
		func(value *types.AttributeValueMemberS) (T, error) { return T(value.Value), nil })
}

// number is a field of type N that contains a whole number.
func number[T int | int64](name, longName string, at func(*entry) *T) field {
	return newField(name, longName, at, isZero,
		func(n T) (types.AttributeValue, error) { return dynamoitem.Number(int64(n)), nil },
		func(value *types.AttributeValueMemberN) (T, error) {
			n, err := parseNumber(value)
			return T(n), err
		})
}

// flag is a field of type BOOL; false is not stored.
func flag(name, longName string, at func(*entry) *bool) field {
	return newField(name, longName, at, isZero,
		func(flag bool) (types.AttributeValue, error) {
			return &types.AttributeValueMemberBOOL{Value: flag}, nil
		},
		func(value *types.AttributeValueMemberBOOL) (bool, error) { return value.Value, nil })
}

// binary is a field of type B.
func binary(name, longName string, at func(*entry) *[]byte) field {
	return newField(name, longName, at, isEmpty,
		func(bytes []byte) (types.AttributeValue, error) {
			return &types.AttributeValueMemberB{Value: bytes}, nil
		},
		func(value *types.AttributeValueMemberB) ([]byte, error) { return value.Value, nil })
}

// timestamp is a time of type N, in milliseconds since 1970.
func timestamp(name, longName string, at func(*entry) *time.Time) field {
	return timeIn(time.Millisecond, name, longName, at)
}

// timeIn is a time of type N, in units since 1970. The table's time to live needs seconds.
func timeIn(unit time.Duration, name, longName string, at func(*entry) *time.Time) field {
	milliseconds := unit.Milliseconds()
	return newField(name, longName, at, time.Time.IsZero,
		func(t time.Time) (types.AttributeValue, error) {
			return dynamoitem.Number(t.UnixMilli() / milliseconds), nil
		},
		func(value *types.AttributeValueMemberN) (time.Time, error) {
			n, err := parseNumber(value)
			return time.UnixMilli(n * milliseconds).UTC(), err
		})
}

// document is a field of type S that contains JSON. A later version must not add members to it, because an older
// version would lose them: it must add an attribute.
func document[T any](name, longName string, at func(*entry) *T, empty func(T) bool) field {
	return newField(name, longName, at, empty,
		func(value T) (types.AttributeValue, error) {
			encoded, err := json.Marshal(value)
			return dynamoitem.Text(string(encoded)), err
		},
		func(value *types.AttributeValueMemberS) (decoded T, err error) {
			if json.Unmarshal([]byte(value.Value), &decoded) != nil {
				return decoded, errNotJSON
			}
			return decoded, nil
		})
}

// list is a document that is an array; an empty one is not stored.
func list[T any](name, longName string, at func(*entry) *[]T) field {
	return document(name, longName, at, isEmpty)
}

func isZero[T comparable](value T) bool {
	var zero T
	return value == zero
}

func isEmpty[T any](values []T) bool { return len(values) == 0 }

var (
	errNotJSON   = errors.New("not the expected JSON")
	errNotNumber = errors.New("not a whole number")
)

func parseNumber(value *types.AttributeValueMemberN) (int64, error) {
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0, errNotNumber
	}
	return n, nil
}
