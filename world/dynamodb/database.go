// Package dynamodb is a model of DynamoDB in memory, at the level of the SDK's client, for the simulator.
//
// Database has the operations, expressions and errors that the gateway uses. It is deterministic, and every operation
// is atomic. It reads the time through a function, starts no goroutines and has no locks: one task uses it at a time.
// Client adds the SDK's attempts, and lets a hook decide what happens to each: a lost response, a conflict, throttling.
//
// It does not copy values. Neither a caller nor the model changes a value of an item once it is stored. A part of
// DynamoDB that the model does not have is a panic that names it, so that no test passes by accident. A request that
// DynamoDB refuses as invalid is one too.
package dynamodb

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tokenLifetime is how long a transaction's token makes a repeat of it a success without effect.
const tokenLifetime = 10 * time.Minute

// maxExpiredAge is the age from which the service ignores a time to live: it may be a mistake.
const maxExpiredAge = 5 * 365 * 24 * time.Hour

// Database is a set of tables. It is not safe for concurrent use, but its clones are independent of it.
type Database struct {
	parsed     *sync.Map // expressions by kind and text; clones share it
	now        func() time.Time
	tables     map[string]*table
	changes    []*Change
	sequence   int64
	tokens     map[string]time.Time // of the applied transactions, with their time
	tokenCount int
}

// New returns a database without tables.
func New(now func() time.Time) *Database {
	return &Database{
		now: now, tables: map[string]*table{}, tokens: map[string]time.Time{}, parsed: &sync.Map{},
	}
}

// CreateTable creates a table. timeToLive is the attribute with an item's time to live in seconds, "" for none. Only
// partition keys of type S, and global indexes with keys only, are modelled.
func (db *Database) CreateTable(in *dynamodb.CreateTableInput, timeToLive string) error {
	name := aws.ToString(in.TableName)
	if db.tables[name] != nil {
		return &types.ResourceInUseException{Message: aws.String("Table already exists: " + name)}
	}
	attributes := map[string]types.ScalarAttributeType{}
	for _, definition := range in.AttributeDefinitions {
		attributes[aws.ToString(definition.AttributeName)] = definition.AttributeType
	}
	hash, sort := keyNames(in.KeySchema)
	if sort != "" || attributes[hash] != types.ScalarAttributeTypeS || len(in.LocalSecondaryIndexes) > 0 {
		notModelled("the key or a local index of table %s", name)
	}
	t := &table{
		name: name, key: hash, timeToLive: timeToLive, items: map[string]*stored{},
	}
	for _, g := range in.GlobalSecondaryIndexes {
		x := &index{name: aws.ToString(g.IndexName), partitions: map[string][]*stored{}}
		x.hash, x.sort = keyNames(g.KeySchema)
		x.sortType = attributes[x.sort]
		if attributes[x.hash] != types.ScalarAttributeTypeS || x.sort == "" ||
			x.sortType == types.ScalarAttributeTypeB || g.Projection.ProjectionType != types.ProjectionTypeKeysOnly {
			notModelled("the key or the projection of index %s", x.name)
		}
		t.indexes = append(t.indexes, x)
	}
	db.tables[name] = t
	return nil
}

func keyNames(schema []types.KeySchemaElement) (hash, sort string) {
	for _, element := range schema {
		if element.KeyType == types.KeyTypeHash {
			hash = aws.ToString(element.AttributeName)
		} else {
			sort = aws.ToString(element.AttributeName)
		}
	}
	return hash, sort
}

// table finds a table of a request.
func (db *Database) table(name *string) *table {
	t := db.tables[aws.ToString(name)]
	if t == nil {
		refuse("there is no table %q", aws.ToString(name))
	}
	return t
}

// Clone returns a copy, cheaply: a table is copied by the first write to it or to its clone. The copy uses the same
// clock. Each of the two may be used by another goroutine.
func (db *Database) Clone() *Database {
	clone := *db
	clone.tables = make(map[string]*table, len(db.tables))
	for name, t := range db.tables {
		t.shared = true
		copied := *t
		clone.tables[name] = &copied
	}
	db.changes = slices.Clip(db.changes)
	clone.changes = db.changes
	clone.tokens = maps.Clone(db.tokens)
	return &clone
}

// Items iterates over a table's items by key, for checks. The caller must not change them, or the database meanwhile.
func (db *Database) Items(tableName string) iter.Seq2[string, Item] {
	return func(yield func(string, Item) bool) {
		t := db.tables[tableName]
		if t == nil {
			return
		}
		for _, key := range t.sortedKeys() {
			if !yield(key, t.items[key].item) {
				return
			}
		}
	}
}

// Hash returns a hash of all items. It depends neither on the order of writes nor on the process. It does not cover
// earlier states, streams and tokens. It takes a few nanoseconds an item, and more for an item that changed.
func (db *Database) Hash() uint64 {
	var sum uint64
	for _, t := range db.tables {
		seed := hashText(hashSeed, t.name)
		for _, s := range t.items {
			sum += mixHash(seed ^ s.hashValue())
		}
	}
	return sum
}

// Expirable returns the keys of a table's items whose time to live has passed, sorted. They stay visible until Expire.
func (db *Database) Expirable(tableName string) []string {
	t := db.tables[tableName]
	var keys []string
	for _, key := range t.sortedKeys() {
		if db.isExpired(t, t.items[key]) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Expire deletes an item if its time to live has passed, and reports whether it did. The kernel decides when, because
// the service deletes up to some days late.
func (db *Database) Expire(tableName, key string) bool {
	t := db.tables[tableName]
	if !db.isExpired(t, t.items[key]) {
		return false
	}
	db.commit(t, key, nil).Expired = true
	return true
}

func (db *Database) isExpired(t *table, s *stored) bool {
	if s == nil || t.timeToLive == "" {
		return false
	}
	value, isNumber := s.item[t.timeToLive].(*types.AttributeValueMemberN)
	if !isNumber {
		return false
	}
	seconds, err := strconv.ParseInt(value.Value, 10, 64)
	age := db.now().Sub(time.Unix(seconds, 0))
	return err == nil && age > 0 && age < maxExpiredAge
}

// newToken returns the token of a client's transaction.
func (db *Database) newToken() string {
	db.tokenCount++
	return "token-" + strconv.Itoa(db.tokenCount)
}

// isRepeated reports whether a transaction with a token was applied within tokenLifetime.
func (db *Database) isRepeated(token *string) bool {
	at, known := db.tokens[aws.ToString(token)]
	return known && db.now().Sub(at) < tokenLifetime
}

// rememberToken keeps the token of an applied transaction, and forgets the old ones.
func (db *Database) rememberToken(token *string) {
	if token == nil {
		return
	}
	now := db.now()
	maps.DeleteFunc(db.tokens, func(_ string, at time.Time) bool { return now.Sub(at) >= tokenLifetime })
	db.tokens[*token] = now
}
