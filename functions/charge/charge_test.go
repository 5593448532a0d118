package charge_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/functions/charge"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/strictjson"
)

// The parts of a charge, in the specification's order.
const (
	root                    = "amountTransaction"
	endUserID               = root + ".endUserId"
	chargingInformationPath = root + ".paymentAmount.chargingInformation"
	amount                  = chargingInformationPath + ".amount"
	currency                = chargingInformationPath + ".currency"
	description             = chargingInformationPath + ".description"
	chargingMetaDataPath    = root + ".paymentAmount.chargingMetaData"
	onBehalfOf              = chargingMetaDataPath + ".onBehalfOf"
	serviceID               = chargingMetaDataPath + ".serviceId"
	status                  = root + ".transactionOperationStatus"
	reference               = root + ".referenceCode"
	correlator              = root + ".clientCorrelator"
)

// expectedEffect is what the golden charge does at the operator.
const expectedEffect = "charge DemoShop.c-1001"

func newFixture(t testing.TB) *operationtest.Fixture {
	t.Helper()
	w := operationtest.New(t)
	operation := &charge.Operation{Pipeline: w.Pipeline, ServiceID: operationtest.ServiceID}
	return w.Serve("charge", operation.Route())
}

func newEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	return operationtest.LoadEvent(t, "testdata/event-encoded.json")
}

func TestGolden(t *testing.T) {
	for _, form := range []string{"encoded", "decoded"} {
		t.Run("specification, Charge: the path "+form, func(t *testing.T) {
			golden := operationtest.LoadEvent(t, "testdata/event-"+form+".json")
			operationtest.Golden(t, "testdata/request.json", []byte(golden.Body()))
			operationtest.GoldenResponse(t, "testdata/answer.json", newFixture(t).Send(t, golden))
		})
	}
	t.Run("without a correlator", func(t *testing.T) {
		response := newFixture(t).Send(t, newEvent(t).RemoveBodyPart(correlator))
		operationtest.GoldenResponse(t, "testdata/answer-without-correlator.json", response)
	})
	t.Run("the call of the operator", func(t *testing.T) {
		w, _ := suite.SendFirst(t)
		operationtest.Golden(t, "testdata/upstream.json", strictjson.Marshal(w.Driver.Calls()[0].Charge))
	})
}

// decision "charge-success": the response is the stored one.
func TestSuccess(t *testing.T) {
	w, response := suite.SendFirst(t)
	existing := w.OnlyEntry(t, ledger.Charge)
	type facts struct{ ID, State, Body, OperatorReference string }
	want := facts{response.Text(root + ".serverReferenceCode"), "done", response.Body, "op-DemoShop.c-1001"}
	got := facts{existing.ID, string(existing.State), string(existing.Response.Body), existing.OperatorReference}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored entry (-want +got):\n%s", diff)
	}
}

func TestEcho(t *testing.T) {
	cases := []struct{ name, part, value string }{
		{"description with HTML", description, `"<b>Tom & 'Jerry'</b>"`},
		{"description with quotes and backslashes", description, `"a \"b\" \\ / c"`},
		{"description in other scripts", description, `"Crédit de communication 你好 🎁 عربي"`},
		{"description with percent escapes", description, `"50%25+x%2Fy"`},
		{"reference with a space and a slash", reference, `"REF / 7 é"`},
		{"correlator with punctuation", correlator, `"a.b~c!d#e"`},
	}
	for _, c := range cases {
		t.Run("echo exactness: "+c.name, func(t *testing.T) {
			e := newEvent(t).SetBodyPart(c.part, json.RawMessage(c.value))
			response := newFixture(t).Send(t, e).AssertStatus(t, 201)
			if got := response.RawJSON(c.part); got != c.value {
				t.Errorf("got %s, want %s", got, c.value)
			}
		})
	}
	t.Run("echo exactness: an escaped text comes back decoded to the same characters", func(t *testing.T) {
		e := newEvent(t).SetBodyPart(description, json.RawMessage(`"\u00e9\ud83c\udf81\u003c"`))
		newFixture(t).Send(t, e).AssertStatus(t, 201).AssertText(t, description, "é🎁<")
	})
}

// decision "unknown-fields".
func TestUnknownFields(t *testing.T) {
	w := newFixture(t)
	e := newEvent(t).SetHeader("X-Other", "é").SetBodyPart("extra", []any{1, "x"}).
		SetBodyPart(root+".more", map[string]any{"a": nil}).SetBodyPart("amounttransaction", "x")
	response := w.Send(t, e).AssertStatus(t, 201)
	golden, err := os.ReadFile("testdata/answer.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"extra", "more"} {
		if strings.Contains(response.Body, name) {
			t.Errorf("%s is echoed: %s", name, response.Body)
		}
	}
	if !strings.Contains(string(golden), response.Text(root+".serverReferenceCode")) {
		t.Error("unknown fields changed the transaction id")
	}
}

// decision "charge-country", "amount-form" and "charge-odc-unit", in each of the six countries. An amount is a number
// or a text, and comes back as it was sent.
func TestAmounts(t *testing.T) {
	cases := []struct {
		mco, currency, amount string
		minor                 int64 // 0: refused
	}{
		{"OCI", "XOF", `"500"`, 500}, {"OCI", "XOF", `500`, 500}, {"OCI", "XOF", `500.00`, 500},
		{"OCI", "XOF", `"500.00"`, 500}, {"OCI", "XOF", `"00500"`, 500}, {"OCI", "XOF", `"500.5"`, 0},
		{"OSN", "XOF", `"999999999999"`, 999999999999}, {"OSN", "XOF", `"1.01"`, 0}, {"OBF", "XOF", `25`, 25},
		{"OCM", "XAF", `"100.000"`, 100}, {"OCM", "XAF", `"100.001"`, 0}, {"OTN", "TND", `"1.23400"`, 1234},
		{"OTN", "TND", `1.234`, 1234}, {"OTN", "TND", `"1.2345"`, 0}, {"OTN", "TND", `"0.000"`, 0},
		{"ODC", "USD", `"15"`, 15}, {"OCD", "USD", `"15.00"`, 15}, {"ODC", "USD", `"0.15"`, 0},
		{"ODC", "USD", `15.5`, 0},
		{"OCI", "XOF", `"-5"`, 0}, {"OCI", "XOF", `-5`, 0}, {"OCI", "XOF", `5e2`, 0}, {"OCI", "XOF", `"5E2"`, 0},
		{"OCI", "XOF", `true`, 0}, {"OCI", "XOF", `["5"]`, 0}, {"OCI", "XOF", `{}`, 0}, {"OCI", "XOF", `""`, 0},
		{"OCI", "XOF", `null`, 0},
	}
	for _, c := range cases {
		t.Run("decision amount-form: "+c.mco+" "+c.amount, func(t *testing.T) {
			w := newFixture(t)
			e := newEvent(t).SetHeader("X-Operator-MCO", c.mco).
				SetBodyPart(currency, c.currency).SetBodyPart(amount, json.RawMessage(c.amount))
			response := w.Send(t, e)
			if c.minor == 0 {
				response.AssertError(t, 400, "SVC0002", amount)
				w.AssertNoSideEffects(t)
				return
			}
			response.AssertStatus(t, 201)
			if got := w.OnlyEntry(t, ledger.Charge).Amount.Minor; got != c.minor {
				t.Errorf("%d minor units, want %d", got, c.minor)
			}
			for _, part := range []string{amount, root + ".paymentAmount.totalAmountCharged"} {
				if got := response.RawJSON(part); got != c.amount {
					t.Errorf("%s is %s, want %s", part, got, c.amount)
				}
			}
		})
	}
}

// decision "charge-odc-unit".
func TestCongoUnits(t *testing.T) {
	w := newFixture(t)
	e := newEvent(t).SetHeader("X-Operator-MCO", "ODC").SetBodyPart(currency, "USD").SetBodyPart(amount, "15")
	response := w.Send(t, e).AssertStatus(t, 201)
	entry, sent := w.OnlyEntry(t, ledger.Charge), w.Driver.Calls()[0]
	if entry.Amount.Minor != 15 || entry.Amount.Exponent != 2 || entry.Route.Country != "CD" {
		t.Errorf("decision charge-odc-unit: stored %d with exponent %d in %s, want 0.15 USD",
			entry.Amount.Minor, entry.Amount.Exponent, entry.Route.Country)
	}
	if sent.Charge.Amount != "15" || sent.Call.MCO != "ODC" {
		t.Errorf("decision charge-odc-unit: sent %s to %s, want 15 to ODC", sent.Charge.Amount, sent.Call.MCO)
	}
	response.AssertText(t, root+".paymentAmount.totalAmountCharged", "15")
}
