package dynamo

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/timeline"
)

// DynamoDB counts a write in units of this many bytes.
const writeUnit = 1024

// finishedCharge is a realistic charge after its response was stored: all names, ids and URLs have the usual lengths.
func finishedCharge() *ledger.Entry {
	at := time.Date(2026, 11, 21, 10, 30, 0, 123e6, time.UTC)
	merchantID, name, correlator, reference := "mfrggzdfmztwq2lk", "KarangueShop", "cart-2026-000184467",
		"INV-2026-000184467"
	id := ledger.ChargeID(merchantID, correlator, reference)
	e := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: id}, Merchant: ledger.Merchant{ID: merchantID, Name: name},
		Request: ledger.Request{
			Fingerprint: ledger.Fingerprint([]byte("{}"), "alias", "SN"), Correlator: correlator,
			ReferenceCode: reference,
		},
		Route: ledger.Route{
			UpstreamKey: ledger.UpstreamKey(name, correlator, reference), Country: "SN", Operator: "sandbox",
			Account: "sn-main",
		},
		Amount: ledger.Amount{Minor: 12500, Currency: "XOF", AsSent: "12500", CountsDaily: true},
		Call:   ledger.Call{LeaseUntil: at.Add(25 * time.Second)},
	}
	e.BeginReservation("AbCdEfGhIjKlMnOpQrStUv", at)
	e.ApplyOutcome(e.Owner, ledger.CallOutcome{
		Call:  ledger.CallResult{Outcome: ledger.CallSucceeded, HTTPStatus: 201},
		State: ledger.Done, ResponseStatus: 201, OperatorReference: "5f1c2a5e-6f0b-4c64-9a71-0a4f8d2f6b1e",
		ResponseBody: []byte(`{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":` +
			`{"chargingInformation":{"amount":12500,"currency":"XOF","description":"Monthly pass"},` +
			`"totalAmountCharged":12500,"chargingMetaData":` +
			`{"onBehalfOf":"KarangueShop","serviceId":"MOBILE_GATEWAY"}},"transactionOperationStatus":"Charged",` +
			`"referenceCode":"INV-2026-000184467","serverReferenceCode":"` + id + `",` +
			`"clientCorrelator":"cart-2026-000184467","resourceURL":"https://api.gateway.example.com/payment/v1/` +
			`acr%3AOperatorAPIToken/transactions/amount/` + id + `"}}`),
	}, at.Add(time.Second))
	e.Version, e.Writer, e.UpdatedAt = 2, "VuTsRqPoNmLkJiHgFeDcBa", at.Add(time.Second)
	e.Reschedule()
	return e
}

// itemSize counts an item as DynamoDB does: names and values in UTF-8, a number by its digits, a BOOL as one byte.
func itemSize(t *testing.T, of item) int {
	t.Helper()
	size := 0
	for name, value := range of {
		size += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberN:
			size += (len(strings.TrimRight(v.Value, "0"))+1)/2 + 1
		case *types.AttributeValueMemberB:
			size += len(v.Value)
		case *types.AttributeValueMemberBOOL:
			size++
		default:
			t.Fatalf("%s has the type %T", name, value)
		}
	}
	return size
}

// A finished charge costs one write unit. One whose attempts failed, with all that are kept, costs two; no other charge
// costs more.
func TestChargeCostsOneOrTwoWriteUnits(t *testing.T) {
	e := finishedCharge()
	if e.Timeline != "" {
		t.Errorf("a charge that succeeded at once has the timeline %q", e.Timeline)
	}
	attempt := ledger.CallAttempt{
		At: e.CreatedAt, Millis: 20000, Outcome: ledger.CallUnknown, Reason: "timeout", Response: 504,
	}
	for _, c := range []struct {
		packs         bool
		failed, units int
	}{
		{false, 0, 1}, {false, 1, 2}, {false, ledger.MaxCallAttempts, 2},
		{true, 0, 1}, {true, 1, 1}, {true, ledger.MaxCallAttempts, 2},
	} {
		e.Call.Attempts = slices.Repeat([]ledger.CallAttempt{attempt}, c.failed)
		encoded, err := (&Store{PackResponses: c.packs}).encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if size := itemSize(t, encoded); size >= c.units*writeUnit {
			t.Errorf("%+v: the item has %d bytes, want under %d", c, size, c.units*writeUnit)
		}
	}
}

// finalPayment is a realistic payment after its final status was stored, which is when its item is largest.
func finalPayment() *ledger.Entry {
	at := time.Date(2026, 11, 21, 10, 30, 0, 123e6, time.UTC)
	order, merchantID := "KarangueShop_2026-000184467", "mfrggzdfmztwq2lk"
	e := &ledger.Entry{
		Key:      ledger.Key{Kind: ledger.Payment, ID: order},
		Merchant: ledger.Merchant{ID: merchantID, Name: "KarangueShop"},
		Request: ledger.Request{
			Fingerprint: ledger.Fingerprint([]byte("{}"), "alias", "SN"), Channel: "ussd", Lang: "fr",
			TransactionID: "93d7e89f-c6d5-88e5-a850-b7b8978e3ceb", State: "7f9c2ba4-e88f-827d-6160-45507605853e",
			Reference: "KarangueShop", MSISDN: "0700000000", CountryAsSent: "SN",
		},
		Route: ledger.Route{
			UpstreamKey: order, Country: "SN", Operator: "orange", Account: "sn-main", CallbackKeys: []int{1},
		},
		Amount: ledger.Amount{Minor: 12500, Currency: "XOF", AsSent: "12500"},
		Call:   ledger.Call{LeaseUntil: at.Add(25 * time.Second)},
		Outbox: ledger.Outbox{URL: "https://api.karangue.example.com/webhooks/mobile-money", From: "p"},
	}
	e.BeginReservation("AbCdEfGhIjKlMnOpQrStUv", at)
	e.ApplyOutcome(e.Owner, ledger.CallOutcome{
		Call:  ledger.CallResult{Outcome: ledger.CallSucceeded, HTTPStatus: 201},
		State: ledger.Done, ResponseStatus: 201, OperatorReference: "f4a03bca-1e21-4e41-9887-da491b2d8160",
		ResponseBody: []byte(`{"meta":{"type":"payment","source":"orange","channel":"ussd"},"status":"pending",` +
			`"amount":"12500","order-id":"` + order + `","currency":"XOF","reference":"KarangueShop",` +
			`"country-code":"SN","state":"` + e.Request.State + `","user_msisdn":"0700000000",` +
			`"Transaction-id":"` + e.Request.TransactionID + `","date":"2026-11-21 10:30:01",` +
			`"intTransaction-id":"` + e.Request.TransactionID + `",` +
			`"extTransaction-id":"f4a03bca-1e21-4e41-9887-da491b2d8160",` +
			`"statusDescription":"Payment is waiting for the customer's approval"}`),
	}, at.Add(time.Second))
	e.ApplyFinalStatus(ledger.StatusReport{
		Status: ledger.Successful, Source: ledger.SourceCallback, MSISDN: "0700000000", UserSMS: true,
	}, at.Add(20*time.Second))
	for _, kind := range []timeline.Kind{timeline.Callback, timeline.Lookup} {
		e.AddReport(timeline.Event{Kind: kind, At: e.FinalAt, Outcome: timeline.Successful})
	}
	e.Version, e.Writer, e.UpdatedAt = 3, "VuTsRqPoNmLkJiHgFeDcBa", at.Add(20*time.Second)
	e.Reschedule()
	return e
}

// TestPaymentCostsOneWriteUnit checks that no write of a usual payment costs two units if responses are packed. Its
// last writes are the largest.
func TestPaymentCostsOneWriteUnit(t *testing.T) {
	encoded, err := (&Store{PackResponses: true}).encode(finalPayment())
	if err != nil {
		t.Fatal(err)
	}
	size := itemSize(t, encoded)
	t.Logf("%d bytes", size)
	if encoded[attributeWakesRelay] == nil || size >= writeUnit {
		t.Errorf("a final payment has %d bytes and the attributes %v, want under %d with a notification", size,
			slices.Sorted(maps.Keys(encoded)), writeUnit)
	}
}

// TestNamesAreUniqueAndShort checks that each field of an entry has its own short name and its own long name in snake
// case.
func TestNamesAreUniqueAndShort(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.name] || seen["long "+f.longName] || derived[f.name] != "" {
			t.Errorf("%s (%s) is used twice", f.name, f.longName)
		}
		seen[f.name], seen["long "+f.longName] = true, true
		if f.name != TimeToLive && len(f.name) > 3 {
			t.Errorf("%s (%s) is longer than three letters", f.name, f.longName)
		}
		if strings.Trim(f.longName, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("%s is not snake case", f.longName)
		}
	}
	// Key and Extra have no attribute of their own.
	if entryFields := countFields(reflect.TypeFor[ledger.Entry]()) - 3; len(fields) != entryFields {
		t.Errorf("%d attributes for %d fields of an entry", len(fields), entryFields)
	}
}

// countFields counts the fields of a part of an entry. A part whose fields have JSON names is one document.
func countFields(part reflect.Type) int {
	if part.Kind() != reflect.Struct || part == reflect.TypeFor[time.Time]() || part.Field(0).Tag != "" {
		return 1
	}
	count := 0
	for i := range part.NumField() {
		count += countFields(part.Field(i).Type)
	}
	return count
}

// TestOperationsPageListsEveryName compares the names with the page on which people look up short names.
func TestOperationsPageListsEveryName(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	names := maps.Clone(derived)
	for _, f := range fields {
		names[f.name] = f.longName
	}
	for name, longName := range names {
		if pair := "`" + name + "` (" + longName + ")"; !strings.Contains(string(page), pair) {
			t.Errorf("docs/operations.md does not list %s", pair)
		}
	}
	_, block, _ := strings.Cut(string(page), "<!-- compared: stored names -->")
	block, _, _ = strings.Cut(block, "<!-- end of stored names -->")
	for _, pair := range regexp.MustCompile("`([a-z_]+)` \\(([a-z_]+)").FindAllStringSubmatch(block, -1) {
		if names[pair[1]] != pair[2] {
			t.Errorf("docs/operations.md lists %s as %s, the code has %q", pair[1], pair[2], names[pair[1]])
		}
	}
	for _, document := range []reflect.Type{
		reflect.TypeFor[ledger.Claim](), reflect.TypeFor[ledger.Conflict](), reflect.TypeFor[ledger.Notification](),
		reflect.TypeFor[ledger.FailedAttempt](), reflect.TypeFor[ledger.ReplayRecord](),
		reflect.TypeFor[ledger.ManualResolution](), reflect.TypeFor[ledger.CallAttempt](),
	} {
		for i := range document.NumField() {
			member, _, _ := strings.Cut(document.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(string(page), "`"+member+"` (") {
				t.Errorf("docs/operations.md does not list the member %s of a %s", member, document.Name())
			}
		}
	}
}
