package dynamodb

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Limits of keys, in bytes.
const (
	maxHashKey = 2048
	maxSortKey = 1024
)

// table has the items and indexes. A shared one is copied before it changes.
type table struct {
	name, key, timeToLive string
	shared                bool // a clone uses the same items and indexes
	items                 map[string]*stored
	sorted                []string // the keys of items, nil if they must be sorted again
	indexes               []*index
}

// stored is one version of an item. It is immutable, except for the hash, which is computed once.
type stored struct {
	key       string
	item      Item
	bytes     int
	positions []position // one for each index of the table
	binary    []string   // the names of the binary attributes
	hash      atomic.Uint64
}

// position is the place of an item in an index.
type position struct {
	present         bool
	partition, sort string
}

// index has the items that have both of its attributes.
type index struct {
	name, hash, sort string
	sortType         types.ScalarAttributeType
	partitions       map[string][]*stored // each sorted by comparePositions
}

// keyValue reads the key of an item or of a request. exact refuses further attributes.
func (t *table) keyValue(item Item, exact bool) string {
	value, isText := item[t.key].(*types.AttributeValueMemberS)
	if !isText || value.Value == "" || len(value.Value) > maxHashKey || exact && len(item) > 1 {
		refuse("the key of table %s in %s", t.name, ItemJSON(item))
	}
	return value.Value
}

// newStored makes the version of an item, whose map it takes over. It refuses an invalid value or index key, and too
// large an item.
func (t *table) newStored(key string, item Item) *stored {
	size, binary := checkValues(item)
	if size > maxItemBytes {
		refuse("the item %s has %d bytes", key, size)
	}
	s := &stored{key: key, item: item, bytes: size, binary: binary}
	s.copyBinary(item)
	if len(t.indexes) > 0 {
		s.positions = make([]position, len(t.indexes))
	}
	for i, x := range t.indexes {
		partition, hasPartition := x.keyText(item, x.hash, types.ScalarAttributeTypeS, maxHashKey)
		sort, hasSort := x.keyText(item, x.sort, x.sortType, maxSortKey)
		if hasPartition && hasSort {
			s.positions[i] = position{present: true, partition: partition, sort: sort}
		}
	}
	return s
}

// copyBinary replaces the binary attributes of an item by copies, so that a caller can change its bytes.
func (s *stored) copyBinary(item Item) Item {
	for _, name := range s.binary {
		if value, isBinary := item[name].(*types.AttributeValueMemberB); isBinary {
			item[name] = &types.AttributeValueMemberB{Value: bytes.Clone(value.Value)}
		}
	}
	return item
}

// copy returns a copy of the item, nil for none.
func (s *stored) copy() Item {
	if s == nil {
		return nil
	}
	return s.copyBinary(maps.Clone(s.item))
}

// selected returns a copy of some attributes.
func (s *stored) selected(names []string) Item {
	item := make(Item, len(names))
	for _, name := range names {
		if s.item[name] != nil {
			item[name] = s.item[name]
		}
	}
	return s.copyBinary(item)
}

// keyText reads a key attribute of an index as a text whose order is the order of the values.
func (x *index) keyText(
	item Item, name string, want types.ScalarAttributeType, maxBytes int,
) (text string, present bool) {
	switch value := item[name].(type) {
	case nil:
		return "", false
	case *types.AttributeValueMemberS:
		if want == types.ScalarAttributeTypeS && value.Value != "" && len(value.Value) <= maxBytes {
			return value.Value, true
		}
	case *types.AttributeValueMemberN:
		if want == types.ScalarAttributeTypeN {
			return numberSortText(value.Value), true
		}
	}
	refuse("the value of %s, a key of index %s", name, x.name)
	return "", false
}

// replace stores a version of an item, or deletes the item if next is nil.
func (t *table) replace(key string, next *stored) (before *stored) {
	t.unshare()
	before = t.items[key]
	if next == nil {
		delete(t.items, key)
	} else {
		t.items[key] = next
	}
	if before == nil || next == nil {
		t.sorted = nil
	}
	for i, x := range t.indexes {
		x.replace(i, before, next)
	}
	return before
}

// unshare copies what a clone uses too.
func (t *table) unshare() {
	if !t.shared {
		return
	}
	t.shared = false
	t.items = maps.Clone(t.items)
	t.indexes = slices.Clone(t.indexes)
	for i, x := range t.indexes {
		copied := *x
		copied.partitions = make(map[string][]*stored, len(x.partitions))
		for name, entries := range x.partitions {
			copied.partitions[name] = slices.Clone(entries)
		}
		t.indexes[i] = &copied
	}
}

// replace moves an item within the index, which is the table's number n.
func (x *index) replace(n int, before, next *stored) {
	if before != nil && before.positions[n].present {
		partition := before.positions[n].partition
		entries := x.partitions[partition]
		at, _ := slices.BinarySearchFunc(entries, before, comparePositions(n))
		if next != nil && next.positions[n] == before.positions[n] {
			entries[at] = next
			return
		}
		if entries = slices.Delete(entries, at, at+1); len(entries) == 0 {
			delete(x.partitions, partition)
		} else {
			x.partitions[partition] = entries
		}
	}
	if next != nil && next.positions[n].present {
		partition := next.positions[n].partition
		entries := x.partitions[partition]
		at, _ := slices.BinarySearchFunc(entries, next, comparePositions(n))
		x.partitions[partition] = slices.Insert(entries, at, next)
	}
}

// comparePositions orders the items of a partition of the table's index number n. The service leaves the order of equal
// sort keys open; here the primary key decides.
func comparePositions(n int) func(a, b *stored) int {
	return func(a, b *stored) int {
		return cmp.Or(strings.Compare(a.positions[n].sort, b.positions[n].sort), strings.Compare(a.key, b.key))
	}
}

// sortedKeys returns the keys of all items. The caller must not change them.
func (t *table) sortedKeys() []string {
	if t.sorted == nil {
		t.sorted = slices.Sorted(maps.Keys(t.items))
	}
	return t.sorted
}

// indexNumber finds an index by name.
func (t *table) indexNumber(name string) int {
	n := slices.IndexFunc(t.indexes, func(x *index) bool { return x.name == name })
	if n < 0 {
		refuse("table %s has no index %s", t.name, name)
	}
	return n
}
