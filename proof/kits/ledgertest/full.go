// Package ledgertest makes entries for the tests of packages that store them. Only tests use it.
package ledgertest

import (
	"reflect"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// Now is the time of the entries.
func Now() time.Time { return time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC) }

// Full is an entry in which reflection sets every field to a value of its own, so that no store forgets a new field. A
// field of an unknown type fails the test. Extra stays nil, because its content depends on the store.
func Full(t *testing.T) *ledger.Entry {
	t.Helper()
	e := &ledger.Entry{}
	f := &filler{t: t, moment: Now()}
	f.fill(reflect.ValueOf(e).Elem(), "Entry")
	e.ExpireAt = Now().Add(24 * time.Hour).Truncate(time.Second)
	e.Kind = ledger.Payment
	return e
}

// filler sets each field to the next value.
type filler struct {
	t      *testing.T
	count  int64
	moment time.Time
}

func (f *filler) fill(v reflect.Value, path string) {
	f.t.Helper()
	f.count++
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(f.moment.Add(time.Duration(f.count) * time.Millisecond)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("value é\" of " + path)
	case reflect.Int, reflect.Int64:
		v.SetInt(f.count)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		if path != "Entry.Extra" {
			f.t.Fatalf("%s: this interface is unknown: extend filler", path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		f.fillSlice(v, path)
	default:
		f.t.Fatalf("%s: the type %s is unknown: extend filler", path, v.Type())
	}
}

func (f *filler) fillSlice(v reflect.Value, path string) {
	f.t.Helper()
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte{0, 0xff, byte(f.count), '"'})
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	for i := range v.Len() {
		f.fill(v.Index(i), path+"[]")
	}
}
