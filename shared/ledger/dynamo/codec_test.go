package dynamo_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

type item = dynamoitem.Item

func text(s string) types.AttributeValue { return dynamoitem.Text(s) }

func encode(t *testing.T, e *ledger.Entry) item {
	t.Helper()
	encoded, err := dynamo.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestDerivedAttributesAreSparse(t *testing.T) {
	small := func(change func(*ledger.Entry)) item {
		key := ledger.Key{Kind: ledger.Payment, ID: "Shop_1"}
		e := &ledger.Entry{Key: key, Version: 1, Merchant: ledger.Merchant{ID: "m"}, CreatedAt: ledgertest.Now()}
		change(e)
		return encode(t, e)
	}
	notAttempted := []ledger.Notification{{ID: "1"}}
	cases := []struct {
		name   string
		change func(*ledger.Entry)
		has    string
		lacks  string
	}{
		{"bare", func(*ledger.Entry) {}, "pk md dk", "da ds wr expire_at ob su"},
		{"due", func(e *ledger.Entry) { e.DueAt = ledgertest.Now() }, "da ds", "wr"},
		{"with a new notification", func(e *ledger.Entry) { e.Outbox.Waiting = notAttempted }, "wr ob", "da ds"},
		{"without a merchant", func(e *ledger.Entry) { e.Merchant.ID = "" }, "", "md dk mi"},
		{"with an end", func(e *ledger.Entry) { e.ExpireAt = time.Unix(1_800_000_000, 0) }, "expire_at", ""},
	}
	for _, c := range cases {
		encoded := small(c.change)
		for name := range strings.FieldsSeq(c.has) {
			if encoded[name] == nil {
				t.Errorf("%s: no %s", c.name, name)
			}
		}
		for name := range strings.FieldsSeq(c.lacks) {
			if encoded[name] != nil {
				t.Errorf("%s: %s = %#v", c.name, name, encoded[name])
			}
		}
	}
	if n, err := dynamoitem.ReadNumber(small(cases[4].change), "expire_at"); n != 1_800_000_000 || err != nil {
		t.Errorf("expire_at is %d (%v), want seconds", n, err)
	}
}

func TestDecodeRefusesWithoutQuoting(t *testing.T) {
	good := encode(t, ledgertest.Full(t))
	wrong := map[string]types.AttributeValue{
		"another type": &types.AttributeValueMemberNULL{Value: true},
		"another text": text("Secret"),
		"not a number": &types.AttributeValueMemberN{Value: "1.5"},
	}
	documents := map[string]bool{"cl": true, "cf": true, "ob": true, "dl": true, "fl": true, "rp": true, "mx": true}
	derived := map[string]bool{"ds": true, "md": true, "dk": true, "wr": true} // never read
	for name, was := range good {
		_, isText := was.(*types.AttributeValueMemberS)
		anyText := isText && !documents[name] && name != "pk"
		for kind, value := range wrong {
			if derived[name] || (kind == "another text" && anyText) {
				continue
			}
			broken := maps.Clone(good)
			broken[name] = value
			if _, err := dynamo.Decode(broken); err == nil || strings.Contains(err.Error(), "Secret") {
				t.Errorf("%s with %s: error = %v", name, kind, err)
			}
		}
	}
	for _, pk := range []types.AttributeValue{nil, text(""), text("pay"), text("pay#"), text("#1")} {
		if _, err := dynamo.Decode(item{"pk": pk}); err == nil {
			t.Errorf("key %#v was accepted", pk)
		}
	}
}

func goldenImage(t testing.TB) []byte {
	t.Helper()
	image, err := os.ReadFile(filepath.Join("testdata", "image.json"))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestDecodeImage(t *testing.T) {
	e, err := dynamo.DecodeImage(goldenImage(t))
	if err != nil {
		t.Fatal(err)
	}
	if extra, _ := e.Extra.(item); len(extra) != 8 {
		t.Errorf("%d unknown attributes, want 8: %#v", len(extra), e.Extra)
	}
	if !e.Outbox.WakesRelay() {
		t.Error("the image does not wake the relay")
	}
	e.Extra = nil
	want := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: "DemoShop_1"}, Merchant: ledger.Merchant{ID: "m"}, Version: 3,
		Call:     ledger.Call{State: ledger.Done, EverUnknown: true},
		Progress: ledger.Progress{Status: ledger.Successful}, CreatedAt: ledgertest.Now(), DueAt: ledgertest.Now(),
		Response: ledger.Response{Status: 201, Body: []byte(`{"a":1}`)},
		Outbox: ledger.Outbox{
			Waiting: []ledger.Notification{{ID: "n-1", Status: ledger.Successful, At: ledgertest.Now()}},
		},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("decoded image (-want +got):\n%s", diff)
	}
}

// TestDecodeImageText reads one text in its forms: JSON has several for most texts.
func TestDecodeImageText(t *testing.T) {
	for value, want := range map[string]string{
		`{"S":"DemoShop"}`: "DemoShop", `{"S":""}`: "", `{"S":"é"}`: "é", `{ "S" : "DemoShop" }`: "DemoShop",
		`{"S":"a\u0041\"b\\"}`: `aA"b\`, "{\"S\":\"a\xff\"}": "a\ufffd", `{"\u0053":"DemoShop"}`: "DemoShop",
	} {
		e, err := dynamo.DecodeImage([]byte(`{"pk":{"S":"pay#1"},"v":{"N":"1"},"m":` + value + `}`))
		if err != nil || e.Merchant.Name != want {
			t.Errorf("%s: %+v, %v, want the text %q", value, e, err, want)
		}
	}
}

// TestImageIsWhatTheStreamCarries encodes an entry as a stream's event does, and reads it back.
func TestImageIsWhatTheStreamCarries(t *testing.T) {
	e := ledgertest.Full(t)
	var event struct {
		Records []struct {
			DynamoDB struct{ NewImage json.RawMessage }
		}
	}
	if err := json.Unmarshal(deliverytest.StreamEvent(t, e), &event); err != nil {
		t.Fatal(err)
	}
	decoded, err := dynamo.DecodeImage(event.Records[0].DynamoDB.NewImage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, decoded); diff != "" {
		t.Errorf("decoded image (-want +got):\n%s", diff)
	}
}

func TestDecodeImageRefusesWithoutQuoting(t *testing.T) {
	for _, image := range []string{
		``, `[]`, `null`, `{"pk":"Secret"}`, `{"pk":{"S":1}}`, `{"pk":{"X":"Secret"}}`, `{"pk":{"S":"pay#1","N":"1"}}`,
		`{"pk":{}}`, `{"pk":{"S":"pay#1"},"a":{"L":[{"S":1}]}}`, `{"pk":{"S":"pay#1"},"a":{"M":{"b":1}}}`,
		`{"pk":{"S":"pay#1"},"bo":{"B":"Secret!"}}`,
	} {
		if _, err := dynamo.DecodeImage([]byte(image)); err == nil || strings.Contains(err.Error(), "Secret") {
			t.Errorf("%.60s: error = %v", image, err)
		}
	}
}

// An image of a later version may nest values up to a depth; deeper ones are refused.
func TestDecodeImageDepth(t *testing.T) {
	for name, form := range map[string][2]string{"lists": {`{"L":[`, `]}`}, "maps": {`{"M":{"a":`, `}}`}} {
		for nested, want := range map[int]bool{1: true, 32: true, 33: false} {
			value := strings.Repeat(form[0], nested) + `{"S":"x"}` + strings.Repeat(form[1], nested)
			_, err := dynamo.DecodeImage([]byte(`{"pk":{"S":"pay#1"},"v":{"N":"1"},"a":` + value + `}`))
			if (err == nil) != want {
				t.Errorf("%d %s: %v, want it read: %v", nested, name, err, want)
			}
		}
	}
}

// FuzzDecodeImage: no image makes it panic, and an entry that it reads can be written and read again.
func FuzzDecodeImage(f *testing.F) {
	f.Add(goldenImage(f))
	f.Add([]byte(`{"pk":{"S":"sms#1"},"ob":{"S":"[{}]"},"da":{"N":"1"}}`))
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
	e.Outbox.Waiting, e.Outbox.UnrecordedAttempts = []ledger.Notification{{ID: "1"}}, 0
	encoded := encode(t, e)
	for _, definition := range dynamo.Schema("table").AttributeDefinitions {
		_, isText := encoded[*definition.AttributeName].(*types.AttributeValueMemberS)
		_, isNumber := encoded[*definition.AttributeName].(*types.AttributeValueMemberN)
		if isText != (definition.AttributeType == "S") || isNumber != (definition.AttributeType == "N") {
			t.Errorf("%s is %#v", *definition.AttributeName, encoded[*definition.AttributeName])
		}
	}
	if got := dynamoitem.ReadText(encoded, dynamo.WakeAttribute); got != dynamo.WakeValue {
		t.Errorf("the attribute that wakes the relay is %q", got)
	}
}
