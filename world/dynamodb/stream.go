package dynamodb

import (
	"fmt"
	"maps"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// shards is the number of a stream's shards.
const shards = 4

// Change is one committed change of an item, and its stream record.
type Change struct {
	Sequence int64 // increases by one with every change of the database
	Table    string
	Key      string // the item's primary key
	Shard    int    // of the item: the stream keeps the order within a shard
	Time     time.Time
	Expired  bool // by the time to live

	keyName       string
	before, after *stored
}

// Old returns the item before the change, nil if there was none. The caller must not change it.
func (c *Change) Old() Item { return c.before.itemOrNil() }

// New returns the item after the change, nil if there is none. The caller must not change it.
func (c *Change) New() Item { return c.after.itemOrNil() }

func (s *stored) itemOrNil() Item {
	if s == nil {
		return nil
	}
	return s.item
}

// Name returns INSERT, MODIFY or REMOVE.
func (c *Change) Name() string {
	switch {
	case c.before == nil:
		return "INSERT"
	case c.after == nil:
		return "REMOVE"
	}
	return "MODIFY"
}

// LambdaEvent returns the event of a batch of records of a stream with new images.
func LambdaEvent(records ...*Change) []byte {
	event := []byte(`{"Records":[`)
	for i, c := range records {
		if i > 0 {
			event = append(event, ',')
		}
		event = c.appendRecord(event)
	}
	return append(event, "]}"...)
}

// appendRecord appends a record in the form of Lambda's event.
func (c *Change) appendRecord(to []byte) []byte {
	to = fmt.Appendf(to, `{"eventID":"%032x","eventName":"%s","eventVersion":"1.1","eventSource":"aws:dynamodb",`+
		`"awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":%d,"Keys":%s`,
		c.Sequence, c.Name(), c.Time.Unix(), ItemJSON(Item{c.keyName: &types.AttributeValueMemberS{Value: c.Key}}))
	bytes := 0
	if c.after != nil {
		bytes = c.after.bytes
		to = append(append(to, `,"NewImage":`...), ItemJSON(c.after.item)...)
	}
	to = fmt.Appendf(to, `,"SequenceNumber":"%021d","SizeBytes":%d,"StreamViewType":"NEW_IMAGE"}`,
		c.Sequence, bytes)
	if c.Expired {
		to = append(to, `,"userIdentity":{"principalId":"dynamodb.amazonaws.com","type":"Service"}`...)
	}
	return append(to, '}')
}

// commit stores a version of an item, or deletes the item if next is nil. It returns the change. A write that changes
// nothing has no stream record, and returns a change that is not kept.
func (db *Database) commit(t *table, key string, next *stored) *Change {
	before := t.items[key]
	if maps.EqualFunc(before.itemOrNil(), next.itemOrNil(), equalValues) {
		return &Change{}
	}
	t.replace(key, next)
	db.sequence++
	c := &Change{
		Sequence: db.sequence, Table: t.name, Key: key, Time: db.now(), keyName: t.key,
		Shard:  int(mixHash(hashText(hashSeed, key)) % shards),
		before: before, after: next,
	}
	db.changes = append(db.changes, c)
	return c
}

// Changes returns all changes after a sequence number, also of tables without a stream. The caller must not change
// them. The delivery of a stream's records is the kernel's: twice, late, or out of order across shards.
func (db *Database) Changes(after int64) []*Change {
	if after == db.sequence {
		return nil
	}
	return db.changes[db.firstAfter(after):]
}

func (db *Database) firstAfter(sequence int64) int {
	return sort.Search(len(db.changes), func(i int) bool { return db.changes[i].Sequence > sequence })
}

// Trim forgets the changes up to a sequence number. Changes no longer returns them, and no Lag hides them.
func (db *Database) Trim(upTo int64) {
	db.changes = append([]*Change(nil), db.changes[db.firstAfter(upTo):]...)
}

// Lag selects the earlier state that an index or an inconsistent read shows. The zero Lag is the latest state. It hides
// the newest changes of each item: at most Writes, and only those younger than Age.
type Lag struct {
	Writes int
	Age    time.Duration
}

// hiddenChanges returns the earlier versions of the items whose newest changes are hidden, nil for an absent item.
func (db *Database) hiddenChanges(t *table, lag Lag) map[string]*stored {
	if lag.Writes == 0 || lag.Age == 0 {
		return nil
	}
	hidden := map[string]*stored{}
	count := map[string]int{}
	oldest := db.now().Add(-lag.Age)
	for i := len(db.changes) - 1; i >= 0 && db.changes[i].Time.After(oldest); i-- {
		c := db.changes[i]
		if c.Table != t.name || count[c.Key] == lag.Writes {
			continue
		}
		count[c.Key]++
		hidden[c.Key] = c.before
	}
	return hidden
}
