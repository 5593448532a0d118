package dynamodb

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxPageBytes is where the service ends a page.
const maxPageBytes = 1 << 20

// GetItem implements the operation. A read that is not consistent may see an earlier state, by lag.
func (db *Database) GetItem(in *dynamodb.GetItemInput, lag Lag) (*dynamodb.GetItemOutput, error) {
	t := db.table(in.TableName)
	s, expressions := db.bind(in.ExpressionAttributeNames, nil, source{kindProjection, in.ProjectionExpression})
	key := t.keyValue(in.Key, true)
	found := t.items[key]
	if !aws.ToBool(in.ConsistentRead) {
		if earlier, hidden := db.hiddenChanges(t, lag)[key]; hidden {
			found = earlier
		}
	}
	if found == nil {
		return &dynamodb.GetItemOutput{}, nil
	}
	return &dynamodb.GetItemOutput{Item: expressions[0].project(s, found, found.item)}, nil
}

// maxBatch is how many items one BatchGetItem reads.
const maxBatch = 100

// BatchGetItem implements the operation for one table and whole items. It leaves the last keys unread, as many as
// unread says.
func (db *Database) BatchGetItem(in *dynamodb.BatchGetItemInput, lag Lag, unread int) (
	*dynamodb.BatchGetItemOutput, error,
) {
	if len(in.RequestItems) != 1 {
		notModelled("a batch of %d tables", len(in.RequestItems))
	}
	out := &dynamodb.BatchGetItemOutput{
		Responses: map[string][]Item{}, UnprocessedKeys: map[string]types.KeysAndAttributes{},
	}
	for name, wanted := range in.RequestItems {
		if wanted.ProjectionExpression != nil || wanted.AttributesToGet != nil {
			notModelled("a projection of a batch")
		}
		if len(wanted.Keys) == 0 || len(wanted.Keys) > maxBatch {
			refuse("a batch of %d keys", len(wanted.Keys))
		}
		read := max(0, len(wanted.Keys)-unread)
		known := map[string]bool{}
		for i, key := range wanted.Keys {
			value := db.table(&name).keyValue(key, true)
			if known[value] {
				refuse("a batch with the key %q twice", value)
			}
			known[value] = true
			if i >= read {
				continue
			}
			one, err := db.GetItem(&dynamodb.GetItemInput{
				TableName: &name, Key: key, ConsistentRead: wanted.ConsistentRead,
			}, lag)
			if err != nil {
				return nil, err
			}
			if one.Item != nil {
				out.Responses[name] = append(out.Responses[name], one.Item)
			}
		}
		if read < len(wanted.Keys) {
			wanted.Keys = wanted.Keys[read:]
			out.UnprocessedKeys[name] = wanted
		}
	}
	return out, nil
}

// page is the common part of Query and Scan.
type page struct {
	table  *table
	scope  *scope
	index  int // -1 for the table itself
	limit  *int32
	start  func(*stored) bool // false for an item up to the exclusive start key
	key    *expression        // the condition of the key, nil for all
	filter *expression
	output *expression // the projection, nil for all

	backwards bool // from the last item of the partition to its first
}

// read returns a page of sorted candidates, as the part that both outputs have. The items that match a condition of the
// key follow each other.
func (p *page) read(candidates []*stored) *dynamodb.QueryOutput {
	if p.limit != nil && *p.limit < 1 {
		refuse("the limit %d", *p.limit)
	}
	out := &dynamodb.QueryOutput{Items: []Item{}}
	bytes := 0
	for _, s := range candidates {
		if !p.start(s) {
			continue
		}
		if !p.key.matches(p.scope, s.item) {
			if out.ScannedCount > 0 {
				break
			}
			continue
		}
		out.ScannedCount++
		visible := s.item
		if p.index >= 0 {
			visible = p.keyOf(s)
		}
		bytes += s.bytes
		if p.filter.matches(p.scope, visible) {
			out.Items = append(out.Items, p.output.project(p.scope, s, visible))
			out.Count++
		}
		if p.limit != nil && out.ScannedCount == *p.limit || bytes > maxPageBytes {
			out.LastEvaluatedKey = p.keyOf(s)
			break
		}
	}
	return out
}

// keyOf returns the key of an item in the index, or in the table.
func (p *page) keyOf(s *stored) Item {
	key := Item{p.table.key: s.item[p.table.key]}
	if p.index >= 0 {
		x := p.table.indexes[p.index]
		key[x.hash], key[x.sort] = s.item[x.hash], s.item[x.sort]
	}
	return key
}

// Query implements the operation for an index, which may show an earlier state, by lag.
func (db *Database) Query(in *dynamodb.QueryInput, lag Lag) (*dynamodb.QueryOutput, error) {
	t := db.table(in.TableName)
	if in.IndexName == nil {
		notModelled("a query of a table, whose key has one attribute")
	}
	if aws.ToBool(in.ConsistentRead) {
		refuse("a consistent read of an index")
	}
	s, expressions := db.bind(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		source{kindKey, in.KeyConditionExpression}, source{kindFilter, in.FilterExpression},
		source{kindProjection, in.ProjectionExpression})
	p := &page{
		table: t, scope: s, index: t.indexNumber(*in.IndexName), limit: in.Limit,
		key: expressions[0], filter: expressions[1], output: expressions[2],
	}
	partition := p.partition(t.indexes[p.index].hash)
	p.backwards = in.ScanIndexForward != nil && !*in.ScanIndexForward
	p.setStart(in.ExclusiveStartKey, partition)
	candidates := db.partition(t, p.index, partition, lag)
	if p.backwards {
		candidates = slices.Clone(candidates)
		slices.Reverse(candidates)
	}
	return p.read(candidates), nil
}

// partition returns the value that the key's condition has for the partition key.
func (p *page) partition(hash string) string {
	if p.key != nil {
		for path, value := range p.key.equalities {
			text, isText := p.scope.values[value].(*types.AttributeValueMemberS)
			if isText && p.scope.name(path) == hash {
				return text.Value
			}
		}
	}
	refuse("the key's condition has no value of %s", hash)
	return ""
}

// setStart makes the page begin after a key.
func (p *page) setStart(startKey Item, partition string) {
	p.start = func(*stored) bool { return true }
	if len(startKey) == 0 {
		return
	}
	key := p.table.keyValue(startKey, p.index < 0)
	if p.index < 0 {
		p.start = func(s *stored) bool { return s.key > key }
		return
	}
	from := p.table.newStored(key, maps.Clone(startKey))
	position := from.positions[p.index]
	if len(startKey) != 3 || !position.present || position.partition != partition {
		refuse("the start key %s is not one of the partition %q", ItemJSON(startKey), partition)
	}
	compare := comparePositions(p.index)
	if p.backwards {
		p.start = func(s *stored) bool { return compare(s, from) < 0 }
		return
	}
	p.start = func(s *stored) bool { return compare(s, from) > 0 }
}

// partition returns the items of a partition, sorted, as of lag. The result is shared: the caller must not change it.
func (db *Database) partition(t *table, n int, partition string, lag Lag) []*stored {
	hidden := db.hiddenChanges(t, lag)
	entries := t.indexes[n].partitions[partition]
	if len(hidden) == 0 {
		return entries
	}
	visible := slices.DeleteFunc(slices.Clone(entries), func(s *stored) bool {
		_, isHidden := hidden[s.key]
		return isHidden
	})
	for _, key := range slices.Sorted(maps.Keys(hidden)) {
		if s := hidden[key]; s != nil && s.positions[n].present && s.positions[n].partition == partition {
			visible = append(visible, s)
		}
	}
	slices.SortFunc(visible, comparePositions(n))
	return visible
}

// Scan implements the operation, for a table, in the order of the keys. It always sees the latest state.
func (db *Database) Scan(in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	t := db.table(in.TableName)
	if in.IndexName != nil || in.Segment != nil {
		notModelled("a scan of an index or of a segment")
	}
	s, expressions := db.bind(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		source{kindFilter, in.FilterExpression}, source{kindProjection, in.ProjectionExpression})
	p := &page{table: t, index: -1, limit: in.Limit, scope: s, filter: expressions[0], output: expressions[1]}
	p.setStart(in.ExclusiveStartKey, "")
	keys := t.sortedKeys()
	candidates := make([]*stored, len(keys))
	for i, key := range keys {
		candidates[i] = t.items[key]
	}
	out := p.read(candidates)
	return &dynamodb.ScanOutput{
		Items: out.Items, Count: out.Count, ScannedCount: out.ScannedCount, LastEvaluatedKey: out.LastEvaluatedKey,
	}, nil
}
