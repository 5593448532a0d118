package kit

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"reflect"
	"time"
)

// unhashedTag names a field that cannot change a later response. Its value is the reason.
const unhashedTag = "unhashed"

// Hash returns a hash of the state that can change a later response, and of more values of a platform that has them.
// Equal states have equal hashes in any order of maps and of the arrival of keys.
func (p *Platform) Hash(more ...any) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return hashOf(reflect.ValueOf(append([]any{p}, more...)))
}

var (
	timeType         = reflect.TypeFor[time.Time]()
	transactionsType = reflect.TypeFor[[]*Transaction]()
)

// hashOf hashes what a value contains. Two pointers are equal if they point to equal values; there are no cycles.
func hashOf(v reflect.Value) uint64 {
	h := fnv.New64a()
	number := func(n uint64) { _ = binary.Write(h, binary.LittleEndian, n) } // a hash never fails
	switch v.Kind() {
	case reflect.Bool, reflect.String:
		_, _ = fmt.Fprint(h, v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number(uint64(v.Int())) //nolint:gosec // its bits
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		number(v.Uint())
	case reflect.Float32, reflect.Float64:
		_, _ = fmt.Fprint(h, v.Float())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			number(hashOf(v.Elem()))
		}
	case reflect.Slice, reflect.Array:
		sum := uint64(0) // of transactions, whose order is only that of the lists
		for i := range v.Len() {
			if v.Type() == transactionsType {
				sum += hashOf(v.Index(i))
			} else {
				number(hashOf(v.Index(i)))
			}
		}
		number(sum)
	case reflect.Map:
		sum := uint64(0) // of the pairs, which have no order
		for pairs := v.MapRange(); pairs.Next(); {
			pair := fnv.New64a()
			_ = binary.Write(pair, binary.LittleEndian, [2]uint64{hashOf(pairs.Key()), hashOf(pairs.Value())})
			sum += pair.Sum64()
		}
		number(sum)
	case reflect.Struct:
		for field, value := range v.Fields() {
			isPlace := v.Type() == timeType && field.Name == "loc" // all times are in UTC
			if field.Tag.Get(unhashedTag) == "" && !isPlace {
				number(hashOf(value))
			}
		}
	default:
		panic("kit: a field of the type " + v.Type().String() + " needs the tag " + unhashedTag)
	}
	return h.Sum64()
}
