package dynamo_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

// releasedDueShards is the number of partitions of the due index that the last release reads. Set it at each release.
const releasedDueShards = 16

// dueRelease is a release of the program: the number of partitions that it reads, and that it writes.
type dueRelease struct{ read, written int }

// dueTable is a ledger's table that several releases use.
type dueTable struct {
	client *model.Client
	store  *dynamo.Store
}

func newDueTable(t *testing.T) dueTable {
	t.Helper()
	schema := dynamo.Schema("ledger")
	schema.StreamSpecification = nil
	database := model.New(time.Now)
	if err := database.CreateTable(schema, ""); err != nil {
		t.Fatal(err)
	}
	client := model.NewClient(database)
	return dueTable{client, dynamo.New(client, "ledger")}
}

// write stores due entries as a release does.
func (d dueTable) write(t *testing.T, r dueRelease, ids ...string) {
	t.Helper()
	for _, id := range ids {
		e := &ledger.Entry{Key: ledger.Key{Kind: ledger.Payment, ID: id}, Version: 1, DueAt: ledgertest.Now()}
		encoded, err := dynamo.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		encoded["ds"] = dynamoitem.Text(strconv.Itoa(ledger.DueShardAmong(e.Key, uint32(r.written))))
		put := &dynamodb.PutItemInput{TableName: aws.String("ledger"), Item: encoded}
		if _, err := d.client.PutItem(t.Context(), put); err != nil {
			t.Fatal(err)
		}
	}
}

// found counts the due entries that a release finds.
func (d dueTable) found(t *testing.T, r dueRelease) (count int) {
	t.Helper()
	for shard := range r.read {
		query := ledger.DueQuery{Shard: shard, Before: ledgertest.Now().Add(time.Hour), Limit: dynamo.MaxPage}
		keys, _, err := d.store.DueKeys(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		count += len(keys)
	}
	return count
}

// decision "due-shards": the sweep of the last release finds all that this one writes. It may run beside it, and after
// a return to it.
func TestPreviousReaderFindsWhatIsDue(t *testing.T) {
	d := newDueTable(t)
	var ids []string
	for i := range 400 {
		ids = append(ids, "Shop_"+strconv.Itoa(i))
	}
	d.write(t, dueRelease{ledger.DueShards, ledger.DueShardsWritten}, ids...)
	if found := d.found(t, dueRelease{read: releasedDueShards}); found != len(ids) {
		t.Errorf("the last release finds %d of %d due entries", found, len(ids))
	}
}

// decision "due-shards": each of two consecutive releases finds all that the other one writes. Without the first of the
// two steps the former one does not.
func TestDueShardsGrowInTwoReleases(t *testing.T) {
	before, first, second := dueRelease{16, 16}, dueRelease{40, 16}, dueRelease{40, 40}
	for _, c := range []struct {
		name           string
		writer, reader dueRelease
		isFound        bool
	}{
		{"before and first", before, first, true}, {"first and before", first, before, true},
		{"first and second", first, second, true}, {"second and first", second, first, true},
		{"before and second", before, second, true}, {"second and before", second, before, false},
	} {
		d := newDueTable(t)
		var ids []string
		for i := range 200 {
			ids = append(ids, "Shop_"+strconv.Itoa(i))
		}
		d.write(t, c.writer, ids...)
		if found := d.found(t, c.reader); (found == len(ids)) != c.isFound {
			t.Errorf("%s: %d of %d found", c.name, found, len(ids))
		}
		d.write(t, c.reader, ids...) // the next write of each entry moves it to the other's partition
		if found := d.found(t, c.reader); found != len(ids) {
			t.Errorf("%s: %d of %d found after they were written again", c.name, found, len(ids))
		}
	}
}
