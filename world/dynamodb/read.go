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
	t, err := db.table(in.TableName)
	if err != nil {
		return nil, err
	}
	s, expressions, err := db.bind(
		in.ExpressionAttributeNames, nil, source{kindProjection, in.ProjectionExpression})
	if err != nil {
		return nil, err
	}
	key, err := t.keyValue(in.Key, true)
	if err != nil {
		return nil, err
	}
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
}

// read returns a page of sorted candidates, as the part that both outputs have. The items that match a condition of the
// key follow each other.
func (p *page) read(candidates []*stored) (*dynamodb.QueryOutput, error) {
	if p.limit != nil && *p.limit < 1 {
		return nil, validationError("Limit must be greater than or equal to 1")
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
	return out, nil
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
	t, err := db.table(in.TableName)
	if err != nil {
		return nil, err
	}
	if in.IndexName == nil {
		notModelled("a query of a table, whose key has one attribute")
	}
	if aws.ToBool(in.ConsistentRead) {
		return nil, validationError("Consistent reads are not supported on global secondary indexes")
	}
	p := &page{table: t, limit: in.Limit}
	if p.index, err = t.indexNumber(*in.IndexName); err != nil {
		return nil, err
	}
	var expressions []*expression
	p.scope, expressions, err = db.bind(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		source{kindKey, in.KeyConditionExpression}, source{kindFilter, in.FilterExpression},
		source{kindProjection, in.ProjectionExpression})
	if err != nil {
		return nil, err
	}
	p.key, p.filter, p.output = expressions[0], expressions[1], expressions[2]
	if p.key == nil {
		return nil, validationError("Either the KeyConditions or KeyConditionExpression parameter must be specified")
	}
	partition, err := p.partition(t.indexes[p.index].hash)
	if err != nil {
		return nil, err
	}
	if in.ScanIndexForward != nil {
		notModelled("a query backwards")
	}
	if err := p.setStart(in.ExclusiveStartKey, partition); err != nil {
		return nil, err
	}
	return p.read(db.partition(t, p.index, partition, lag))
}

// partition returns the value that the key's condition has for the partition key.
func (p *page) partition(hash string) (string, error) {
	for path, value := range p.key.equalities {
		if text, isText := p.scope.values[value].(*types.AttributeValueMemberS); isText && p.scope.name(path) == hash {
			return text.Value, nil
		}
	}
	return "", validationError("Query condition missed key schema element: " + hash)
}

// setStart makes the page begin after a key.
func (p *page) setStart(startKey Item, partition string) error {
	p.start = func(*stored) bool { return true }
	if len(startKey) == 0 {
		return nil
	}
	invalid := validationError("The provided starting key is invalid")
	key, err := p.table.keyValue(startKey, p.index < 0)
	if err != nil {
		return invalid
	}
	if p.index < 0 {
		p.start = func(s *stored) bool { return s.key > key }
		return nil
	}
	from, err := p.table.newStored(key, maps.Clone(startKey))
	if err != nil || len(startKey) != 3 || !from.positions[p.index].present {
		return invalid
	}
	if from.positions[p.index].partition != partition {
		return validationError("The provided starting key is outside query boundaries based on provided conditions")
	}
	compare := comparePositions(p.index)
	p.start = func(s *stored) bool { return compare(s, from) > 0 }
	return nil
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
	t, err := db.table(in.TableName)
	if err != nil {
		return nil, err
	}
	if in.IndexName != nil || in.Segment != nil {
		notModelled("a scan of an index or of a segment")
	}
	s, expressions, err := db.bind(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		source{kindFilter, in.FilterExpression}, source{kindProjection, in.ProjectionExpression})
	if err != nil {
		return nil, err
	}
	p := &page{table: t, index: -1, limit: in.Limit, scope: s, filter: expressions[0], output: expressions[1]}
	if err := p.setStart(in.ExclusiveStartKey, ""); err != nil {
		return nil, err
	}
	keys := t.sortedKeys()
	candidates := make([]*stored, len(keys))
	for i, key := range keys {
		candidates[i] = t.items[key]
	}
	out, err := p.read(candidates)
	if err != nil {
		return nil, err
	}
	return &dynamodb.ScanOutput{
		Items: out.Items, Count: out.Count, ScannedCount: out.ScannedCount, LastEvaluatedKey: out.LastEvaluatedKey,
	}, nil
}
