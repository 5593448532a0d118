package report_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// storeDay stores a transaction of each kind and status, and some that no list has.
func storeDay(f *fixture) {
	charged := f.newEntry(ledger.Charge, "11111111-1111-8111-8111-111111111111", ledger.Done, 1)
	charged.Request.Correlator, charged.Request.ReferenceCode = "=HYPERLINK(\"x\")", "REF-1"
	charged.Amount = ledger.Amount{Currency: "USD", Minor: 15, Exponent: 2, AsSent: "15"}
	charged.Route.Country, charged.OperatorReference = "CD", "SRC-1"
	refused := f.newEntry(ledger.Charge, "22222222-2222-8222-8222-222222222222", ledger.Refused, 2)
	refused.Request.ReferenceCode, refused.Response.Status = "REF;@2", 403
	refused.Response.Body = []byte(
		`{"requestError":{"policyException":{"messageId":"POL1000","text":"x","variables":[]}}}`)
	unknown := f.newEntry(ledger.Charge, "33333333-3333-8333-8333-333333333333", ledger.Unknown, 3)
	pending := f.payment("DemoShop_4", ledger.Pending, 4)
	paid := f.payment("DemoShop_5", ledger.Successful, 5)
	paid.FinalAt, paid.OperatorReference = f.Clock.Now().Add(20*time.Second), "MP-5"
	paid.Outbox.Delivered = []ledger.Notification{{
		ID: ledger.NotificationID(paid.Key, ledger.Successful), Status: ledger.Successful, At: paid.FinalAt,
		Attempts: 1, DeliveredAt: paid.FinalAt.Add(time.Second),
	}}
	failed := f.payment("DemoShop_6", ledger.Failed, 6)
	failed.FailureReason, failed.FinalAt = ledger.NotEnoughFunds, f.Clock.Now().Add(21*time.Second)
	failed.Outbox.Waiting = []ledger.Notification{{
		ID: ledger.NotificationID(failed.Key, ledger.Failed), Status: ledger.Failed, At: failed.FinalAt, Attempts: 10,
		DeadReason: "attempts", LastStatus: 500, LastReason: "500",
	}}
	sent := f.newEntry(ledger.SMS, "77777777-7777-8777-8777-777777777777", ledger.Done, 7)
	sent.Status, sent.Request.Correlator, sent.Amount = ledger.DeliveredToNetwork, "s-7", ledger.Amount{}
	sent.Outbox.Waiting = []ledger.Notification{{
		ID: ledger.NotificationID(sent.Key, sent.Status), Status: sent.Status, At: sent.CreatedAt, Parked: true,
		Attempts: 2, NextAttemptAt: sent.CreatedAt.Add(time.Hour), LastStatus: 410,
	}}
	silent := f.newEntry(ledger.SMS, "88888888-8888-8888-8888-888888888888", ledger.Reserved, 8)
	silent.Amount = ledger.Amount{}

	released := f.payment("DemoShop_91", ledger.Pending, 9)
	released.State = ledger.Released
	expired := f.payment("DemoShop_92", ledger.Pending, 9)
	expired.ExpireAt = f.Clock.Now()
	another := f.payment("OtherShop_93", ledger.Pending, 9)
	another.Merchant.ID = operationtest.OtherProfile().ID
	yesterday := f.payment("DemoShop_94", ledger.Pending, -24*3600)
	f.store(charged, refused, unknown, pending, paid, failed, sent, silent, released, expired, another, yesterday)
}

func TestList(t *testing.T) {
	f := newFixture(t)
	storeDay(f)
	response := f.Send(t, list(t, nil)).AssertStatus(t, 200)
	operationtest.GoldenResponse(t, "testdata/transactions.json", response)
	if f.Ledger.CallCount(storetest.GetAll) != 1 || f.Ledger.CallCount(storetest.Get) != 0 {
		t.Errorf("%d batches and %d reads, want one batch", f.Ledger.CallCount(storetest.GetAll),
			f.Ledger.CallCount(storetest.Get))
	}
	f.AssertNoSideEffects(t)
	if strings.Contains(response.Body, operationtest.MSISDN) {
		t.Error("the list has a complete number")
	}
}

// Each text of a merchant is a text in a spreadsheet too.
func TestListAsCSV(t *testing.T) {
	f := newFixture(t)
	storeDay(f)
	response := f.Send(t, list(t, nil).SetHeader("Accept", "text/csv")).AssertStatus(t, 200)
	response.AssertHeader(t, "Content-Type", "text/csv; charset=utf-8; header=present")
	want, err := os.ReadFile("testdata/transactions.csv") // with the line ends of this file system
	if err != nil || strings.ReplaceAll(response.Body, "\r\n", "\n") != string(want) {
		t.Errorf("%v, got:\n%s", err, response.Body)
	}
	rows, err := csv.NewReader(strings.NewReader(response.Body)).ReadAll()
	if err != nil || len(rows) != 9 {
		t.Fatalf("%d rows, %v; want 9", len(rows), err)
	}
	for _, row := range rows[1:] {
		for i, cell := range row {
			if cell != "" && strings.Contains("=+-@\t\r", cell[:1]) {
				t.Errorf("the column %s begins a formula: %s", rows[0][i], cell)
			}
		}
	}
}

// The notification of a CSV row is that of the row's status, also beside a dead letter of an earlier status.
func TestNotificationOfARow(t *testing.T) {
	f := newFixture(t)
	e := f.newEntry(ledger.SMS, "77777777-7777-8777-8777-777777777777", ledger.Done, 1)
	e.Status, e.Amount = ledger.DeliveredToTerminal, ledger.Amount{}
	e.Outbox.Waiting = []ledger.Notification{{
		ID: "earlier", Status: ledger.DeliveredToNetwork, Attempts: 10, DeadReason: "server",
	}}
	e.Outbox.Delivered = []ledger.Notification{{
		ID: "latest", Status: ledger.DeliveredToTerminal, Attempts: 1, DeliveredAt: f.Clock.Now(),
	}}
	f.store(e)
	response := f.Send(t, list(t, nil).SetHeader("Accept", "text/csv")).AssertStatus(t, 200)
	if !strings.Contains(response.Body, ",latest,DeliveredToTerminal,delivered,1,") {
		t.Errorf("got %s", response.Body)
	}
}

func TestAccept(t *testing.T) {
	f := newFixture(t)
	for accept, isCSV := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/csv": true, "TEXT/CSV; q=0.5, */*": true,
		"text/csv;q=0": false, "application/json, text/csv": false, "text/csv, application/json": true,
		"text/html": false, ",;": false, "text/csv;q=0.0": false, "text/csv; Q=0.000, */*": false,
		"text/csv;q = 0.":  false,
		"text/csv;q=0.001": true, "text/csv;q=x": true, "text/csv;q=0;x, application/json": false,
	} {
		response := f.Send(t, list(t, nil).SetHeader("Accept", accept)).AssertStatus(t, 200)
		if got := strings.HasPrefix(response.Body, "operation,id,"); got != isCSV {
			t.Errorf("Accept %q: CSV %v, want %v", accept, got, isCSV)
		}
	}
}

// page is a page of a list.
type page struct {
	Day          string
	Transactions []struct{ ID, Status, Operation string }
	Next         string
}

func (f *fixture) page(t *testing.T, query map[string]string) page {
	t.Helper()
	response := f.Send(t, list(t, query)).AssertStatus(t, 200)
	var p page
	if err := json.Unmarshal([]byte(response.Body), &p); err != nil {
		t.Fatal(err)
	}
	if header := response.Header["X-Next-Cursor"]; header != p.Next {
		t.Errorf("the header has the cursor %q, the body %q", header, p.Next)
	}
	return p
}

// walk reads all pages of a list. Between two pages it calls arrive.
func (f *fixture) walk(t *testing.T, query map[string]string, arrive func(pages int)) (ids []string, pages int) {
	t.Helper()
	query = clone(query)
	for {
		p := f.page(t, query)
		for _, row := range p.Transactions {
			ids = append(ids, row.ID)
		}
		pages++
		if p.Next == "" {
			return ids, pages
		}
		if pages > 1000 {
			t.Fatal("the list does not end")
		}
		query["cursor"] = p.Next
		arrive(pages)
	}
}

func clone(query map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range query {
		all[name] = value
	}
	return all
}

func TestEmptyDay(t *testing.T) {
	f := newFixture(t)
	for _, of := range []string{"2090-01-01", "2190-01-01", day} {
		body := f.Send(t, list(t, map[string]string{"day": of})).AssertStatus(t, 200).Body
		if want := `{"day":"` + of + `","transactions":[]}`; body != want {
			t.Errorf("got %s, want %s", body, want)
		}
	}
	csvBody := f.Send(t, list(t, nil).SetHeader("Accept", "text/csv")).AssertStatus(t, 200).Body
	if strings.Count(csvBody, "\n") != 1 {
		t.Errorf("an empty list as CSV: %q, want the header", csvBody)
	}
}

func TestFilters(t *testing.T) {
	f := newFixture(t)
	storeDay(f)
	for _, c := range []struct {
		query map[string]string
		want  string // the last digits of the ids
	}{
		{nil, "12345678"},
		{map[string]string{"operation": "charge"}, "123"},
		{map[string]string{"operation": "pay"}, "456"},
		{map[string]string{"operation": "sms"}, "78"},
		{map[string]string{"status": "Processing"}, "38"},
		{map[string]string{"status": "Refused"}, "2"},
		{map[string]string{"status": "successful"}, "5"},
		{map[string]string{"status": "successful", "operation": "charge"}, ""},
		{map[string]string{"country": "cd"}, "1"},
		{map[string]string{"operator": "Orange", "country": "CI"}, "2345678"},
		{map[string]string{"operator": "mtn"}, ""},
		{map[string]string{"day": "2096-11-20"}, "4"},
		{map[string]string{"unknown": "x"}, "12345678"},
	} {
		for _, limit := range []string{"1", "3", "100"} {
			query := clone(c.query)
			query["limit"] = limit
			ids, _ := f.walk(t, query, func(int) {})
			got := ""
			for _, id := range ids {
				got += id[len(id)-1:]
			}
			if got != c.want {
				t.Errorf("%v: got %s, want %s", query, got, c.want)
			}
		}
	}
}

// Pages stay as they are while rows arrive behind and before their position, over several partitions.
func TestPagesAreStable(t *testing.T) {
	for _, shards := range []int{1, 4} {
		f := newFixture(t)
		f.UpdateDemo(func(p *merchant.Profile) { p.SetDayShards(shards) })
		add := func(number, second int) {
			e := f.payment("DemoShop_"+strconv.Itoa(number), ledger.Pending, second)
			e.Merchant.DayShard = ledger.DayShardAmong(e.Key, shards)
			f.store(e)
		}
		for i := range 40 {
			add(i, i/4) // four of each time
		}
		ids, pages := f.walk(t, map[string]string{"limit": "7"}, func(pages int) {
			add(100_000+pages, 100+pages) // the newest
			add(200_000+pages, -100)      // late, before all positions
		})
		if pages < 6 {
			t.Errorf("%d partitions: %d pages", shards, pages)
		}
		counts := map[string]int{}
		for _, id := range ids {
			counts[id]++
		}
		for i := range 40 {
			if id := fmt.Sprintf("DemoShop_%d", i); counts[id] != 1 {
				t.Errorf("%d partitions: %s is listed %d times, want once", shards, id, counts[id])
			}
		}
		for id, n := range counts {
			if n != 1 || number(id) > 200_000 {
				t.Errorf("%d partitions: %s is listed %d times", shards, id, n)
			}
		}
		if !slices.IsSortedFunc(ids[:40], func(a, b string) int { return number(a)/4 - number(b)/4 }) {
			t.Errorf("%d partitions: not in the order of creation: %v", shards, ids)
		}
	}
}

func number(id string) int {
	_, digits, _ := strings.Cut(id, "_")
	n, _ := strconv.Atoi(digits)
	return n
}

// A walk continues after the merchant got more partitions.
func TestMorePartitionsDuringAWalk(t *testing.T) {
	f := newFixture(t)
	for i := range 10 {
		f.store(f.payment("DemoShop_"+strconv.Itoa(i), ledger.Pending, i))
	}
	ids, _ := f.walk(t, map[string]string{"limit": "4"}, func(int) {
		f.UpdateDemo(func(p *merchant.Profile) { p.SetDayShards(3) })
	})
	if len(ids) != 10 {
		t.Errorf("%d rows, want 10: %v", len(ids), ids)
	}
}

// A filter that selects little reads at most 1,000 transactions in a request.
func TestReadsAreBounded(t *testing.T) {
	f := newFixture(t)
	const all = 1250
	for i := range all {
		f.store(f.payment("DemoShop_"+strconv.Itoa(i), ledger.Pending, i))
	}
	f.store(f.payment("DemoShop_9999", ledger.Successful, all))
	first := f.page(t, map[string]string{"status": "successful"})
	if len(first.Transactions) != 0 || first.Next == "" {
		t.Fatalf("the first page: %+v, want none and a cursor", first)
	}
	if batches := f.Ledger.CallCount(storetest.GetAll); batches != 10 {
		t.Errorf("%d batches, want 10", batches)
	}
	second := f.page(t, map[string]string{"status": "successful", "cursor": first.Next})
	if len(second.Transactions) != 1 || second.Next != "" {
		t.Errorf("the second page: %+v, want the one", second)
	}
	// Without a filter a page reads what it has.
	before := f.Ledger.CallCount(storetest.GetAll)
	rows := len(f.page(t, nil).Transactions)
	if batches := f.Ledger.CallCount(storetest.GetAll) - before; rows != 50 || batches != 1 {
		t.Errorf("%d rows by %d batches, want 50 by 1", rows, batches)
	}
}
