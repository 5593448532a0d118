package dynamo_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

// packRelease is a release of the program: whether it reads the short form of a response, and whether it writes it.
type packRelease struct{ unpacks, packs bool }

// oneItem is a table that has the last item that was put.
type oneItem struct {
	dynamo.Client

	item item
}

func (o *oneItem) PutItem(
	_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	o.item = in.Item
	return &dynamodb.PutItemOutput{}, nil
}

func (o *oneItem) GetItem(
	context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: o.item}, nil
}

// write stores an entry as a release does: its first version, or one that replaces another release's.
func (o *oneItem) write(t *testing.T, r packRelease, e *ledger.Entry) {
	t.Helper()
	store := dynamo.New(o, "ledger")
	store.PackResponses = r.packs
	write := store.Replace
	if o.item == nil {
		write = store.Insert
	}
	if existing, err := write(t.Context(), e, ledger.Reserve); existing != nil || err != nil {
		t.Fatalf("%s: %v, %v", e.Key, existing, err)
	}
}

// response reads the stored response as a release does. One from before the short form takes the bytes as they are.
func (o *oneItem) response(t *testing.T, r packRelease) string {
	t.Helper()
	if !r.unpacks {
		body, _ := o.item["bo"].(*types.AttributeValueMemberB)
		return string(body.Value)
	}
	e, err := dynamo.New(o, "ledger").Get(t.Context(), ledger.Key{})
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Response.Body)
}

// packable is a response that its short form shortens.
const packable = `{"meta":{"type":"payment","source":"sandbox","channel":"ussd"},"status":"pending","amount":"500",` +
	`"order-id":"DemoShop_2000000","currency":"XOF","reference":"DemoShop","country-code":"CI","state":"s"}`

// The same key gets the same response from each of two consecutive releases, when either one wrote it and when either
// one writes it again. Without the first of the two steps the former one responds with other bytes.
func TestResponsesArePackedInTwoReleases(t *testing.T) {
	before, first, second := packRelease{}, packRelease{unpacks: true}, packRelease{unpacks: true, packs: true}
	for _, c := range []struct {
		name           string
		writer, reader packRelease
		isRead         bool
	}{
		{"before and first", before, first, true}, {"first and before", first, before, true},
		{"first and second", first, second, true}, {"second and first", second, first, true},
		{"before and second", before, second, true}, {"second and before", second, before, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, e := range storedEntries(t) {
				if len(e.Response.Body) == 0 {
					continue
				}
				e.Response.Body = []byte(packable)
				table := &oneItem{}
				table.write(t, c.writer, e)
				if got := table.response(t, c.reader); (got == packable) != c.isRead {
					t.Errorf("%s: read %.20q", name, got)
				}
				e.Version++
				table.write(t, c.reader, e)
				if got := table.response(t, c.writer); c.isRead && c.writer.unpacks && got != packable {
					t.Errorf("%s: read %.20q after the reader's write", name, got)
				}
				if got := table.response(t, c.reader); got != packable {
					t.Errorf("%s: read its own %.20q", name, got)
				}
			}
		})
	}
}

// TestDefaultStoresAsBefore: without PackResponses each item is stored byte for byte as a program from before the short
// form stored it, and that program reads each response.
func TestDefaultStoresAsBefore(t *testing.T) {
	made := map[string]item{}
	for name, e := range storedEntries(t) {
		table := &oneItem{}
		table.write(t, packRelease{}, e)
		made[name] = table.item
		if len(e.Response.Body) > 0 && table.response(t, packRelease{}) != string(e.Response.Body) {
			t.Errorf("%s: the program from before reads another response", name)
		}
	}
	if want, _ := readStored(t, "stored.json"); !bytes.Equal(storedJSON(t, made), want) {
		t.Error("the items differ from stored.json")
	}
}
