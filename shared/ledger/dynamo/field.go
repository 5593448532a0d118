package dynamo

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
)

// field is one attribute of an item and the field of an entry that it holds. encode gives nil for an empty field, which
// is not stored.
type field struct {
	name   string
	encode func(*ledger.Entry) (types.AttributeValue, error)
	decode func(*ledger.Entry, types.AttributeValue) error
}

// text is a field of type S.
func text[T ~string](name string, at func(*ledger.Entry) *T) field {
	return field{
		name: name,
		encode: func(e *ledger.Entry) (types.AttributeValue, error) {
			if *at(e) == "" {
				return nil, nil
			}
			return &types.AttributeValueMemberS{Value: string(*at(e))}, nil
		},
		decode: func(e *ledger.Entry, value types.AttributeValue) error {
			s, ok := value.(*types.AttributeValueMemberS)
			if !ok {
				return wrongType(name)
			}
			*at(e) = T(s.Value)
			return nil
		},
	}
}

// number is a field of type N that holds a whole number.
func number[T int | int64](name string, at func(*ledger.Entry) *T) field {
	return field{
		name: name,
		encode: func(e *ledger.Entry) (types.AttributeValue, error) {
			if *at(e) == 0 {
				return nil, nil
			}
			return wholeNumber(int64(*at(e))), nil
		},
		decode: func(e *ledger.Entry, value types.AttributeValue) error {
			whole, err := readNumber(name, value)
			*at(e) = T(whole)
			return err
		},
	}
}

// flag is a field of type BOOL; false is not stored.
func flag(name string, at func(*ledger.Entry) *bool) field {
	return field{
		name: name,
		encode: func(e *ledger.Entry) (types.AttributeValue, error) {
			if !*at(e) {
				return nil, nil
			}
			return &types.AttributeValueMemberBOOL{Value: true}, nil
		},
		decode: func(e *ledger.Entry, value types.AttributeValue) error {
			b, ok := value.(*types.AttributeValueMemberBOOL)
			if !ok {
				return wrongType(name)
			}
			*at(e) = b.Value
			return nil
		},
	}
}

// binary is a field of type B.
func binary(name string, at func(*ledger.Entry) *[]byte) field {
	return field{
		name: name,
		encode: func(e *ledger.Entry) (types.AttributeValue, error) {
			if len(*at(e)) == 0 {
				return nil, nil
			}
			return &types.AttributeValueMemberB{Value: *at(e)}, nil
		},
		decode: func(e *ledger.Entry, value types.AttributeValue) error {
			b, ok := value.(*types.AttributeValueMemberB)
			if !ok {
				return wrongType(name)
			}
			*at(e) = b.Value
			return nil
		},
	}
}

// timestamp is a time stored as N, in units of milliseconds or, for the table's time to live, seconds since 1970.
func timestamp(name string, unit time.Duration, at func(*ledger.Entry) *time.Time) field {
	return field{
		name: name,
		encode: func(e *ledger.Entry) (types.AttributeValue, error) {
			if at(e).IsZero() {
				return nil, nil
			}
			return wholeNumber(at(e).UnixMilli() / int64(unit/time.Millisecond)), nil
		},
		decode: func(e *ledger.Entry, value types.AttributeValue) error {
			count, err := readNumber(name, value)
			*at(e) = time.UnixMilli(count * int64(unit/time.Millisecond)).UTC()
			return err
		},
	}
}

// document is a field of type S that holds JSON. A later version must not add members to it, which an older one would
// lose, but attributes beside it. empty says when it is not stored.
func document[T any](name string, at func(*ledger.Entry) *T, empty func(T) bool) field {
	return field{
		name: name,
		encode: func(e *ledger.Entry) (types.AttributeValue, error) {
			if empty(*at(e)) {
				return nil, nil
			}
			encoded, err := json.Marshal(*at(e))
			if err != nil {
				return nil, fmt.Errorf("attribute %s: %w", name, err)
			}
			return &types.AttributeValueMemberS{Value: string(encoded)}, nil
		},
		decode: func(e *ledger.Entry, value types.AttributeValue) error {
			s, ok := value.(*types.AttributeValueMemberS)
			if !ok {
				return wrongType(name)
			}
			if json.Unmarshal([]byte(s.Value), at(e)) != nil {
				return fmt.Errorf("attribute %s does not hold its JSON", name)
			}
			return nil
		},
	}
}

// list is a document that is an array; an empty one is not stored.
func list[T any](name string, at func(*ledger.Entry) *[]T) field {
	return document(name, at, func(items []T) bool { return len(items) == 0 })
}

func wholeNumber(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func readNumber(name string, value types.AttributeValue) (int64, error) {
	n, ok := value.(*types.AttributeValueMemberN)
	if !ok {
		return 0, wrongType(name)
	}
	whole, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("attribute %s is not a whole number", name)
	}
	return whole, nil
}

func wrongType(name string) error { return fmt.Errorf("attribute %s has another type than ours", name) }
