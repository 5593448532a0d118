package daycount_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/gatewayctl/counts/daycount"
	"mobilegateway/shared/ledger"
)

// entry is an entry of one operator and country.
func entry(kind ledger.Kind, state ledger.State, status ledger.Status, minor int64) *ledger.Entry {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: kind}, Call: ledger.Call{State: state}, Progress: ledger.Progress{Status: status},
		Route: ledger.Route{Operator: "sandbox", Country: "CI"},
	}
	if kind != ledger.SMS {
		e.Amount = ledger.Amount{Minor: minor, Currency: "XOF"}
	}
	return e
}

type numbers = daycount.Numbers

func payment(state ledger.State, status ledger.Status) *ledger.Entry {
	return entry(ledger.Payment, state, status, 7)
}

func charge(state ledger.State) *ledger.Entry { return entry(ledger.Charge, state, "", 7) }

func sms(state ledger.State, status ledger.Status) *ledger.Entry {
	return entry(ledger.SMS, state, status, 0)
}

// Each way in which a transaction ends counts as one of four.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		e    *ledger.Entry
		want numbers
	}{
		"paid":                  {payment(ledger.Done, ledger.Successful), numbers{Succeeded: 1}},
		"paid after a timeout":  {payment(ledger.Unknown, ledger.Successful), numbers{Succeeded: 1}},
		"not paid":              {payment(ledger.Done, ledger.Failed), numbers{Failed: 1}},
		"cancelled":             {payment(ledger.Done, ledger.Cancelled), numbers{Failed: 1}},
		"expired":               {payment(ledger.Unknown, ledger.Expired), numbers{Failed: 1}},
		"a payment waits":       {payment(ledger.Done, ledger.Pending), numbers{Pending: 1}},
		"an unknown payment":    {payment(ledger.Unknown, ledger.Pending), numbers{Unknown: 1}},
		"a payment was refused": {payment(ledger.Refused, ""), numbers{Failed: 1}},
		"charged":               {charge(ledger.Done), numbers{Succeeded: 1}},
		"a charge was refused":  {charge(ledger.Refused), numbers{Failed: 1}},
		"a charge was released": {charge(ledger.Released), numbers{Failed: 1}},
		"an unknown charge":     {charge(ledger.Unknown), numbers{Unknown: 1}},
		"a charge in flight":    {charge(ledger.Reserved), numbers{Pending: 1}},
		"sent":                  {sms(ledger.Done, ledger.MessageWaiting), numbers{Succeeded: 1}},
		"delivered":             {sms(ledger.Unknown, ledger.DeliveredToTerminal), numbers{Succeeded: 1}},
		"not delivered":         {sms(ledger.Done, ledger.DeliveryImpossible), numbers{Failed: 1}},
		"an unknown SMS":        {sms(ledger.Unknown, ""), numbers{Unknown: 1}},
	} {
		var count daycount.Count
		count.Add(c.e)
		c.want.Number, c.want.Amounts = 1, map[string]int64{}
		if c.want.Succeeded == 1 && c.e.Kind != ledger.SMS {
			c.want.Amounts["XOF"] = 7
		}
		if diff := cmp.Diff(c.want, count.Total()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The order in which entries are read changes nothing: equal counts have equal bytes.
func TestEncodeIsCanonical(t *testing.T) {
	entries := []*ledger.Entry{
		payment(ledger.Done, ledger.Successful), charge(ledger.Done),
		payment(ledger.Done, ledger.Failed), sms(ledger.Done, ""),
	}
	entries[2].Route.Country, entries[3].Route.Operator = "CM", "mtn"
	entries[0].Amount.Currency = "USD"
	var forwards, backwards daycount.Count
	for i := range entries {
		forwards.Add(entries[i])
		backwards.Add(entries[len(entries)-1-i])
	}
	const want = `{"v":1,"rows":[` +
		`{"operator":"mtn","country":"CI","operation":"sms","number":1,"succeeded":1,"failed":0,"unknown":0,` +
		`"pending":0,"amounts":{}},` +
		`{"operator":"sandbox","country":"CI","operation":"charge","number":1,"succeeded":1,"failed":0,"unknown":0,` +
		`"pending":0,"amounts":{"XOF":7}},` +
		`{"operator":"sandbox","country":"CI","operation":"pay","number":1,"succeeded":1,"failed":0,"unknown":0,` +
		`"pending":0,"amounts":{"USD":7}},` +
		`{"operator":"sandbox","country":"CM","operation":"pay","number":1,"succeeded":0,"failed":1,"unknown":0,` +
		`"pending":0,"amounts":{}}]}`
	if got := forwards.Encode(); got != want || backwards.Encode() != want {
		t.Errorf("encoded as\n%s\nand\n%s, want\n%s", got, backwards.Encode(), want)
	}
	decoded, err := daycount.Decode(want)
	if diff := cmp.Diff(forwards, decoded); err != nil || diff != "" {
		t.Errorf("decoded: %v (-want +got):\n%s", err, diff)
	}
	if got := (daycount.Count{}).Encode(); got != `{"v":1,"rows":[]}` {
		t.Errorf("a day without transactions: %s", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"v":2,"rows":{"other":"form"}}`: "a newer version of gatewayctl stored this count",
		`{"v":0,"rows":[]}`:               "the stored count is damaged",
		`{"rows":[]}`:                     "the stored count is damaged",
		`{"v":1,"rows":{}}`:               "the stored count is damaged",
		`{"v":1,"ro`:                      "the stored count is damaged",
		``:                                "the stored count is damaged",
	} {
		_, err := daycount.Decode(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if isNewer := strings.HasPrefix(want, "a newer"); errors.Is(err, daycount.ErrVersion) != isNewer {
			t.Errorf("%q: %v is ErrVersion: %t", text, err, !isNewer)
		}
	}
}
