package dynamo_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/ledger/ledgertest"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func TestEveryFieldRoundTrips(t *testing.T) {
	e := ledgertest.Full(t)
	e.Extra = item{"from_the_future": &types.AttributeValueMemberSS{Value: []string{"a"}}}
	encoded, err := dynamo.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := dynamo.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(decoded, e) {
		t.Errorf("got  %+v\nwant %+v", decoded, e)
	}
}

func TestNamesAreSnakeCaseAndUnique(t *testing.T) {
	encoded, err := dynamo.Encode(ledgertest.Full(t))
	if err != nil {
		t.Fatal(err)
	}
	for name := range encoded {
		if strings.ToLower(name) != name || strings.ContainsAny(name, "- #") {
			t.Errorf("attribute %q", name)
		}
	}
	// One attribute a field, but for the key, which is two fields, and Extra, which is none.
	if fields := reflect.TypeFor[ledger.Entry]().NumField() - 2; len(encoded) < fields {
		t.Errorf("%d attributes for %d fields", len(encoded), fields)
	}
}

func TestDerivedAttributesAreSparse(t *testing.T) {
	small := func(change func(*ledger.Entry)) item {
		e := &ledger.Entry{Key: ledger.Key{Kind: ledger.Payment, ID: "Shop_1"}, Version: 1, MerchantID: "m", CreatedAt: ledgertest.Now()}
		change(e)
		encoded, err := dynamo.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	untried := []ledger.Notification{{ID: "1"}}
	cases := []struct {
		name   string
		change func(*ledger.Entry)
		has    []string
		lacks  []string
	}{
		{"bare", func(*ledger.Entry) {}, []string{"pk", "merchant_day", "day_sort"}, []string{"due_at", "due_shard", "fast", "expire_at", "outbox", "status"}},
		{"due", func(e *ledger.Entry) { e.DueAt = ledgertest.Now() }, []string{"due_at", "due_shard"}, []string{"fast"}},
		{"to be told", func(e *ledger.Entry) { e.Outbox = untried }, []string{"fast", "outbox"}, []string{"due_at", "due_shard"}},
		{"without a merchant", func(e *ledger.Entry) { e.MerchantID = "" }, nil, []string{"merchant_day", "day_sort", "merchant_id"}},
		{"with an end", func(e *ledger.Entry) { e.ExpireAt = time.Unix(1_800_000_000, 0) }, []string{"expire_at"}, nil},
	}
	for _, c := range cases {
		encoded := small(c.change)
		for _, name := range c.has {
			if encoded[name] == nil {
				t.Errorf("%s: no %s", c.name, name)
			}
		}
		for _, name := range c.lacks {
			if encoded[name] != nil {
				t.Errorf("%s: %s = %#v", c.name, name, encoded[name])
			}
		}
	}
	if n, _ := small(cases[4].change)["expire_at"].(*types.AttributeValueMemberN); n == nil || n.Value != "1800000000" {
		t.Errorf("expire_at is not in seconds: %#v", n)
	}
}

func TestDecodeRefusesWithoutQuoting(t *testing.T) {
	good, err := dynamo.Encode(ledgertest.Full(t))
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]types.AttributeValue{
		"another type": &types.AttributeValueMemberNULL{Value: true},
		"not its text": text("Secret"),
		"not a number": &types.AttributeValueMemberN{Value: "1.5"},
	}
	for name, was := range good {
		for what, value := range wrong {
			_, isText := was.(*types.AttributeValueMemberS)
			isJSON := name == "claim" || name == "conflicts" || name == "outbox" || name == "told" || name == "attempts" || name == "replays" || name == "word"
			unread := name == "due_shard" || name == "merchant_day" || name == "day_sort" || name == "fast"
			if unread || (what == "not its text" && isText && !isJSON && name != "pk") {
				continue
			}
			broken := item{}
			for n, v := range good {
				broken[n] = v
			}
			broken[name] = value
			if _, err := dynamo.Decode(broken); err == nil || strings.Contains(err.Error(), "Secret") {
				t.Errorf("%s with %s: error = %v", name, what, err)
			}
		}
	}
	for _, pk := range []types.AttributeValue{nil, text(""), text("pay"), text("pay#"), text("#1")} {
		if _, err := dynamo.Decode(item{"pk": pk}); err == nil {
			t.Errorf("key %#v was accepted", pk)
		}
	}
}

func TestDecodeImage(t *testing.T) {
	image, err := os.ReadFile(filepath.Join("testdata", "image.json"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := dynamo.DecodeImage(image)
	if err != nil {
		t.Fatal(err)
	}
	if e.ID != "DemoShop_1" || e.Version != 3 || e.Status != ledger.Successful || !e.EverUnknown || string(e.ResponseBody) != `{"a":1}` ||
		!e.WakesRelay() || e.OutboxHead().ID != "n-1" || !e.CreatedAt.Equal(ledgertest.Now()) {
		t.Errorf("%+v", e)
	}
	if extra, _ := e.Extra.(item); len(extra) != 8 {
		t.Errorf("extra %#v", e.Extra)
	}
}

// TestImageIsWhatTheStreamCarries encodes an entry as a stream's event does, and reads it back.
func TestImageIsWhatTheStreamCarries(t *testing.T) {
	e := ledgertest.Full(t)
	encoded, err := dynamo.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	image := map[string]map[string]any{}
	for name, value := range encoded {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			image[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			image[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberB:
			image[name] = map[string]any{"B": v.Value}
		case *types.AttributeValueMemberBOOL:
			image[name] = map[string]any{"BOOL": v.Value}
		default:
			t.Fatalf("%s is %T", name, value)
		}
	}
	raw, err := json.Marshal(image)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := dynamo.DecodeImage(raw)
	if err != nil || !reflect.DeepEqual(decoded, e) {
		t.Errorf("got  %+v, %v\nwant %+v", decoded, err, e)
	}
}

func TestDecodeImageRefusesWithoutQuoting(t *testing.T) {
	deep := strings.Repeat(`{"L":[`, 200) + strings.Repeat(`]}`, 200)
	for _, image := range []string{
		``, `[]`, `null`, `{"pk":"Secret"}`, `{"pk":{"S":1}}`, `{"pk":{"X":"Secret"}}`, `{"pk":{"S":"pay#1","N":"1"}}`, `{"pk":{}}`,
		`{"pk":{"S":"pay#1"},"a":{"L":[{"S":1}]}}`, `{"pk":{"S":"pay#1"},"a":{"M":{"b":1}}}`, `{"pk":{"S":"pay#1"},"answer_body":{"B":"Secret!"}}`,
		`{"pk":{"S":"pay#1"},"a":` + deep + `}`,
	} {
		if _, err := dynamo.DecodeImage([]byte(image)); err == nil || strings.Contains(err.Error(), "Secret") {
			t.Errorf("%.60s: error = %v", image, err)
		}
	}
}

// FuzzDecodeImage: no image makes it panic, and what it reads it can write and read again.
func FuzzDecodeImage(f *testing.F) {
	if image, err := os.ReadFile(filepath.Join("testdata", "image.json")); err == nil {
		f.Add(image)
	}
	f.Add([]byte(`{"pk":{"S":"sms#1"},"outbox":{"S":"[{}]"},"due_at":{"N":"1"}}`))
	f.Fuzz(func(t *testing.T, image []byte) {
		e, err := dynamo.DecodeImage(image)
		if err != nil {
			return
		}
		encoded, err := dynamo.Encode(e)
		if err != nil {
			return // a time that JSON cannot write
		}
		again, err := dynamo.Decode(encoded)
		if err != nil || again.Key != e.Key || again.Version != e.Version || again.State != e.State {
			t.Fatalf("again %+v, %v", again, err)
		}
	})
}

func TestSchemaCoversTheDerivedAttributes(t *testing.T) {
	e := ledgertest.Full(t)
	e.Outbox = []ledger.Notification{{ID: "1"}}
	encoded, err := dynamo.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range dynamo.Schema("table").AttributeDefinitions {
		_, isText := encoded[*definition.AttributeName].(*types.AttributeValueMemberS)
		_, isNumber := encoded[*definition.AttributeName].(*types.AttributeValueMemberN)
		if isText != (definition.AttributeType == "S") || isNumber != (definition.AttributeType == "N") {
			t.Errorf("%s is %#v", *definition.AttributeName, encoded[*definition.AttributeName])
		}
	}
	if fast, _ := encoded[dynamo.WakeAttribute].(*types.AttributeValueMemberS); fast == nil || fast.Value != dynamo.WakeValue {
		t.Errorf("fast is %#v", encoded[dynamo.WakeAttribute])
	}
}
