package telemetry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/telemetry"
)

// plantedSecrets must never appear in a log line, in any of these forms.
var plantedSecrets = []string{
	"gwl_m1x9_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdo_c0ffee",
	"gws_eyJtIjoibTEiLCJnIjoxfQ.c2lnbmF0dXJlMTIz",
	"gwc_m1x9_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdo_c0ffee",
	"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	"Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1ub3A",
	"2250701021001",
	"0701021001",
}

// Passes every planted secret to every setter of text, as it is and inside a sentence.
func TestNoSecretReachesTheLogLine(t *testing.T) {
	setters := map[string]func(*telemetry.LogLine, string){
		"RequestID": (*telemetry.LogLine).SetRequestID,
		"Operation": (*telemetry.LogLine).SetOperation,
		"Merchant":  (*telemetry.LogLine).SetMerchant,
		"Operator":  (*telemetry.LogLine).SetOperator,
		"routing":   func(e *telemetry.LogLine, text string) { e.SetRouting(text, text, text) },
		"Outcome":   (*telemetry.LogLine).SetOutcome,
		"ErrorID":   (*telemetry.LogLine).SetErrorID,
		"MSISDN":    (*telemetry.LogLine).SetMSISDN,
		"Cause":     func(e *telemetry.LogLine, text string) { e.SetCause(errors.New(text)) },
		"wrapped": func(e *telemetry.LogLine, text string) {
			e.SetCause(fault.NewInternal(errors.New("call: " + text)))
		},
		"part": func(e *telemetry.LogLine, text string) { e.SetCause(fault.ForPart(fault.InvalidPart, text)) },
	}
	sentences := []string{
		"%s", "Bearer %s", "authorization: Bearer %s", "token=%s", "https://api.example.test/v1?token=%s",
		"https://user:%s@api.example.test/", `Post "https://api.example.test/callbacks/v1/payments/orange/%s": EOF`,
		`invalid body {"user_msisdn":"%s"}`, "tel:+%s", "/requests/%s/deliveryInfos", "number %s.",
		"x\n%s\tx", "a,%s;b",
	}
	for name, set := range setters {
		for _, sentence := range sentences {
			for _, plantedSecret := range plantedSecrets {
				event := telemetry.NewLogLine("charge", started)
				set(event, fmt.Sprintf(sentence, plantedSecret))
				if line := encodeLine(t, event); strings.Contains(line, plantedSecret) {
					t.Errorf("%s(%q) wrote %s", name, fmt.Sprintf(sentence, plantedSecret), line)
				}
			}
		}
	}
}

// A merchant's key appears in the log, but our credentials and phone numbers do not.
func TestMalformedKeysAreDropped(t *testing.T) {
	for _, c := range []struct{ operation, key, want string }{
		{"pay", "DemoShop_1234567890", "DemoShop_1234567890"},
		{"sweep", "DemoShop_0700009997", "DemoShop_0700009997"},
		{"notif", "S1_123456789012345678901234", "S1_123456789012345678901234"},
		{"charge", "DemoShop_1234567890", "DemoShop_********90"},
		{"sms", "cust_0700009997", "cust_********97"},
		{"pay", "0700009997_1", "************"},
		{"pay", "a0700009995b_1", "a********95b_1"},
		{"pay", "Shop_07 00 00 99 97", "Shop_************97"},
		{"pay", "Shop_" + strings.Repeat("1", 26), "Shop_" + strings.Repeat("1", 26)},
		{"charge", "c6af9ac6-7b61-11e6-9a41-93e8deadbeef", "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"},
		{"charge", "00000000-1111-8222-9333-444444444444", "00000000-1111-8222-9333-444444444444"},
		{"charge", "1234567", "1234567"},
		{"charge", "12-34-567", "12-34-567"},
		{"charge", "12345678", "******78"},
		{"charge", "07-00-00-99-96", "************96"},
		{"charge", "cust 07 00 00 99 94", "cust ************94"},
		{"charge", "order/0700009997/7x", "order/************x"},
		{"charge", "a0700009995b", "a********95b"},
		{"charge", "(225)0700.00/99_97", "(***************97"},
		{"charge", "x 07\u00a000\u00a000\u00a099\u00a094", "x ************94"},
		{"charge", "x ٠٧٠٠٠٠٩٩٩٤", "x ********************"},
		{"charge", "0700009997 2026-11-21", "******************21"},
		{"charge", "+2250701021001", "+***********01"},
		{"charge", "tel:+2250701021001", "tel:+***********01"},
		{"charge", "1234567890123456", "1234567890123456"},
		{"charge", "c-1001", "c-1001"},
		{"charge", "gwl_m1_x_y", "***"},
		{"charge", "aaaabbbbccccdddd_mJ4Zt0yUQk3r-8sVbXcLwPq2EoNfHgTdIaK7uR5vYxE_1a2b3c4d", "aaaabbbb***"},
		{"charge", "order mJ4Zt0yUQk3r+8sVbXcLwPq2EoNfHgTdIaK7uR5vYx==", "order mJ4Zt0yU***"},
		{"charge", "c6af9ac67b6111e69a4193e8deadbeef", "c6af9ac67b6111e69a4193e8deadbeef"},
		{"charge", "order-of-customer-abc-for-item-x-at-shop-7", "order-of-customer-abc-for-item-x-at-shop-7"},
		{"charge", "Bearer abc", "***"},
		{"charge", "basic YTpi", "***"},
		{"charge", "a\nb\u202e", "a b "},
		{"charge", strings.Repeat("é", 100), strings.Repeat("é", 48)},
		{"charge", strings.Repeat("é", 45) + "0700009997", strings.Repeat("é", 45) + "******"},
	} {
		event := telemetry.NewLogLine(c.operation, started)
		event.SetTransactionKey(c.key)
		if got := decodeLine(t, event)["TransactionKey"]; got != c.want {
			t.Errorf("%s: SetTransactionKey(%q) wrote %q, want %q", c.operation, c.key, got, c.want)
		}
	}
}

func TestCauseIsTruncatedAndCanBeCleared(t *testing.T) {
	event := telemetry.NewLogLine("pay", started)
	event.SetCause(logsafe.Errorf("%s", logsafe.Name(strings.Repeat("é ", 5000))))
	if got, ok := decodeLine(t, event)["Cause"].(string); !ok || len(got) > 512 {
		t.Errorf("the cause has %d bytes (present: %v), want at most 512", len(got), ok)
	}
	event.SetCause(nil)
	if got := decodeLine(t, event)["Cause"]; got != nil {
		t.Errorf("SetCause(nil) left the cause %v", got)
	}
}

// Only a word of the vocabulary, or the id of an error, is written.
func TestTextsAreFiltered(t *testing.T) {
	setOperator, setErrorID := (*telemetry.LogLine).SetOperator, (*telemetry.LogLine).SetErrorID
	for _, c := range []struct {
		field     string
		set       func(*telemetry.LogLine, string)
		kept, not []string
	}{
		{"Operator", setOperator, []string{"orange", "mtn-ci", "sms.receipt"},
			[]string{"", "1orange", "two words", "482913", "oråge", strings.Repeat("a", 41), "a\nb"}},
		{"ErrorID", setErrorID, []string{"SVC0280", "POL1000", "900908", "900800"},
			[]string{"", "SVC028", "SVC02800", "482913", "svc0280", "POL10x0"}},
	} {
		for i, text := range slices.Concat(c.kept, c.not) {
			var want any
			if i < len(c.kept) {
				want = text
			}
			event := telemetry.NewLogLine("charge", started)
			c.set(event, text)
			if got := decodeLine(t, event)[c.field]; got != want {
				t.Errorf("%s %q is written as %v, want %v", c.field, text, got, want)
			}
		}
	}
}
