package report_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/merchant"
)

// The parameter that is wrong is named, and nothing is read for it.
func TestInvalidParameters(t *testing.T) {
	f := newFixture(t)
	storeDay(f)
	cursor := f.page(t, map[string]string{"limit": "1"}).Next
	reads := f.Ledger.CallCount(storetest.Day)
	for name, values := range map[string][]string{
		"day":   {"", "2096-13-01", "2096-02-30", "today", "2096-11-21T00:00:00Z", "21.11.2096", "2096-1-1"},
		"limit": {"", "+5", "0", "101", "-1", "1.5", "ten", "99999999999999999999"},
		"cursor": {"", "x", "!!!", cursor[:len(cursor)-4], cursor + "A", strings.Repeat("A", 20),
			strings.ToLower(cursor), cursor[:8] + "\n" + cursor[8:]},
	} {
		for _, value := range values {
			f.Send(t, list(t, map[string]string{name: value})).AssertError(t, 400, "SVC0002", name)
		}
	}
	f.Send(t, list(t, map[string]string{"operation": "refund"})).
		AssertError(t, 400, "SVC0003", "operation", "charge, pay, sms")
	f.Send(t, list(t, map[string]string{"country": "FR"})).
		AssertError(t, 400, "SVC0003", "country", "CI, CD, CM, SN, TN, BF")
	for _, name := range []string{"status", "operator"} {
		response := f.Send(t, list(t, map[string]string{name: "x'--"}))
		if found, ok := response.Exception(); !ok || found.MessageID != "SVC0003" || found.Variables[0] != name {
			t.Errorf("%s: %d %s", name, response.Status, response.Body)
		}
	}
	for _, name := range []string{"day", "operation", "status", "operator", "country", "limit", "cursor"} {
		twice := map[string][]string{name: {"a", "b"}}
		f.Send(t, list(t, nil).SetField("multiValueQueryStringParameters", twice)).AssertError(t, 400, "SVC0002", name)
	}
	if got := f.Ledger.CallCount(storetest.Day); got != reads {
		t.Errorf("%d queries for invalid requests", got-reads)
	}
}

// A cursor belongs to its merchant, its day and its filters.
func TestCursorOfAnother(t *testing.T) {
	f := newFixture(t)
	f.entitleOther()
	storeDay(f)
	cursor := f.page(t, map[string]string{"limit": "1"}).Next
	own := map[string]string{"cursor": cursor}
	for _, event := range []*operationtest.Event{
		list(t, own).SetHeader("Authorization", operationtest.OtherToken),
		list(t, map[string]string{"cursor": cursor, "day": "2096-11-20"}),
		list(t, map[string]string{"cursor": cursor, "operation": "pay"}),
	} {
		f.Send(t, event).AssertError(t, 400, "SVC0002", "cursor")
	}
	f.Send(t, list(t, map[string]string{"cursor": cursor, "day": day, "limit": "2"})).AssertStatus(t, 200)
	f.Clock.Advance(24 * time.Hour) // a walk that began without a day ends on its first day
	if p := f.page(t, map[string]string{"cursor": cursor}); p.Day != day || len(p.Transactions) != 7 {
		t.Errorf("after midnight: %+v", p)
	}
}

func TestAnothersRows(t *testing.T) {
	f := newFixture(t)
	storeDay(f)
	f.entitleOther()
	body := f.Send(t, list(t, nil).SetHeader("Authorization", operationtest.OtherToken)).AssertStatus(t, 200).Body
	if strings.Contains(body, "DemoShop_") || !strings.Contains(body, "OtherShop_93") {
		t.Errorf("OtherShop gets %s", body)
	}
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	for name, event := range map[string]func() *operationtest.Event{
		"transactions": func() *operationtest.Event { return list(t, nil) },
		"operators":    func() *operationtest.Event { return operators(t) },
	} {
		t.Run(name, func(t *testing.T) {
			f.Send(t, event()).AssertStatus(t, 200)
			f.Send(t, event().SetHeader("Authorization")).AssertError(t, 401, "900902")
			f.Send(t, event().SetHeader("Authorization", "Bearer unknown")).AssertError(t, 401, "900901")
			f.Send(t, event().SetField("httpMethod", "POST")).AssertError(t, 404, "900906")
			// A profile from before has no entitlement of reading.
			f.Send(t, event().SetHeader("Authorization", operationtest.OtherToken)).AssertError(t, 403, "900908")
		})
	}
	f.Send(t, list(t, map[string]string{"day": "x"}).SetHeader("Authorization", operationtest.OtherToken)).
		AssertError(t, 400, "SVC0002", "day") // decision "order-of-refusals"
	f.FailEvery(storetest.Day)
	f.Send(t, list(t, nil)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
	f.FailEvery(storetest.GetAll)
	storeDay(f)
	f.Send(t, list(t, nil)).AssertError(t, 500, "SVC0001", "PDK_SMSW_0001")
}

// decision "merchant-limits": reports are requests too.
func TestRate(t *testing.T) {
	f := newFixture(t)
	f.UpdateDemo(func(p *merchant.Profile) { p.RequestsPerSecond, p.Burst = 1, 1 })
	f.Send(t, list(t, nil)).AssertStatus(t, 200)
	f.Send(t, list(t, nil)).AssertError(t, 429, "900800")
	f.AssertCounted(t, "RateLimitedRequests")
}
