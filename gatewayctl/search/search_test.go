package search_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/search"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

type (
	query  = search.Query
	filter = search.Filter
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a ledger with merchants, whose numbers of partitions are in their profiles.
type world struct {
	t      *testing.T
	ledger *storetest.Ledger
	shops  []*merchant.Profile
	count  int
}

// newWorld returns a ledger with merchants that have these numbers of partitions.
func newWorld(t *testing.T, shards ...int) *world {
	w := &world{t: t, ledger: storetest.NewLedger(nil)}
	for i, count := range shards {
		p := &merchant.Profile{ID: "m" + strconv.Itoa(i), Name: "Shop" + strconv.Itoa(i)}
		p.SetDayShards(count)
		w.shops = append(w.shops, p)
	}
	return w
}

// add stores a successful payment of 1000 XOF, with changes.
func (w *world) add(shop int, at time.Time, changes ...func(*ledger.Entry)) *ledger.Entry {
	w.count++
	p := w.shops[shop]
	e := &ledger.Entry{
		Key:      ledger.Key{Kind: ledger.Payment, ID: p.Name + "_" + strconv.Itoa(w.count)},
		Merchant: ledger.Merchant{ID: p.ID, Name: p.Name}, Version: 1, CreatedAt: at, UpdatedAt: at,
		Call: ledger.Call{State: ledger.Done}, Progress: ledger.Progress{Status: ledger.Successful},
		Route:   ledger.Route{Operator: "sandbox", Account: "a1", Country: "CI"},
		Request: ledger.Request{Channel: "ussd", MSISDN: "0707072034"},
		Amount:  ledger.Amount{Minor: 1000, Currency: "XOF"},
	}
	e.Merchant.DayShard = p.DayShard(e.Key)
	for _, change := range changes {
		change(e)
	}
	w.ledger.Overwrite(e)
	return e
}

func (w *world) merchants() ([]*merchant.Profile, int, error) { return slices.Clone(w.shops), 1, nil }

func (w *world) find(q search.Query) search.Page {
	w.t.Helper()
	if q.Now.IsZero() {
		q.Now = now
	}
	page, err := search.Find(context.Background(), w.ledger, w.merchants, q)
	if err != nil {
		w.t.Fatalf("%+v: %v", q, err)
	}
	if page.Calls > search.MaxCalls || len(page.Entries) > search.MaxRows {
		w.t.Errorf("a page has %d calls and %d rows", page.Calls, len(page.Entries))
	}
	return page
}

// findAll searches all pages, with a change between them. It fails if they do not end.
func (w *world) findAll(q search.Query, between func()) (ids []string, pages []search.Page) {
	w.t.Helper()
	const tooMany = 200
	for {
		page := w.find(q)
		ids, pages = append(ids, idsOf(page)...), append(pages, page)
		if page.Continue == "" {
			return ids, pages
		}
		if len(pages) == tooMany {
			w.t.Fatal("the pages do not end")
		}
		q.Continue = page.Continue
		between()
	}
}

func idsOf(page search.Page) (ids []string) {
	for _, e := range page.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestFilters(t *testing.T) {
	w := newWorld(t, 1, 1)
	early := w.add(0, now.Add(-2*time.Hour))
	big := w.add(0, now.Add(-time.Hour), func(e *ledger.Entry) {
		e.Amount.Minor, e.Request.MSISDN, e.Payer = 1005, "", "2250707071234"
	})
	routed := w.add(1, now.Add(-time.Minute), func(e *ledger.Entry) {
		e.Route = ledger.Route{Operator: "mtn", Account: "mtn-momo/ci", Country: "CM"}
		e.Status, e.Request.Channel = ledger.Pending, "web"
	})
	charge := w.add(1, now, func(e *ledger.Entry) {
		e.Key = ledger.Key{Kind: ledger.Charge, ID: "c1"}
		e.State, e.Status, e.Request = ledger.Unknown, "", ledger.Request{}
		e.Amount = ledger.Amount{Minor: 150, Exponent: 2, Currency: "USD"}
	})
	yesterday := w.add(0, now.Add(-24*time.Hour))
	for name, c := range map[string]struct {
		q    search.Query
		want []*ledger.Entry
	}{
		"today, the newest first": {query{}, []*ledger.Entry{charge, routed, big, early}},
		"two days":                {query{Since: "yesterday"}, []*ledger.Entry{charge, routed, big, early, yesterday}},
		"yesterday":               {query{Until: "yesterday"}, []*ledger.Entry{yesterday}},
		"from a time of today on": {query{Since: "11:00"}, []*ledger.Entry{charge, routed, big}},
		"before a time of today":  {query{Until: "11:00"}, []*ledger.Entry{early}},
		"a time of a day": {query{Since: "2026-02-28T12:00", Until: "2026-02-28T12:01"}, []*ledger.Entry{
			yesterday,
		}},
		"a time with a zone":         {query{Since: "2026-03-01T12:59:00+01:00"}, []*ledger.Entry{charge, routed}},
		"operator":                   {query{Filter: filter{Operator: "MTN"}}, []*ledger.Entry{routed}},
		"platform of a route":        {query{Filter: filter{Platform: "mtn-momo"}}, []*ledger.Entry{routed}},
		"platform without a route":   {query{Filter: filter{Platform: "sandbox"}}, []*ledger.Entry{charge, big, early}},
		"country":                    {query{Filter: filter{Country: "cm"}}, []*ledger.Entry{routed}},
		"channel":                    {query{Filter: filter{Channel: "web"}}, []*ledger.Entry{routed}},
		"status":                     {query{Filter: filter{Status: "pending"}}, []*ledger.Entry{routed}},
		"state":                      {query{Filter: filter{State: "unknown"}}, []*ledger.Entry{charge}},
		"kind":                       {query{Filter: filter{Kind: "charge"}}, []*ledger.Entry{charge}},
		"amount":                     {query{Filter: filter{Amount: "1005"}}, []*ledger.Entry{big}},
		"amount with zeros":          {query{Filter: filter{Amount: "1.5"}}, []*ledger.Entry{charge}},
		"amount and reported number": {query{Filter: filter{Amount: "1005", Payer: "234"}}, []*ledger.Entry{big}},
		"operator and number": {query{Filter: filter{Operator: "sandbox", Payer: "34"}},
			[]*ledger.Entry{big, early}},
		"all at once": {query{Since: "11:30", Filter: filter{
			Merchant: "Shop1", Kind: "pay", Operator: "mtn", Platform: "mtn-momo", Country: "CM", Channel: "web",
			Status: "pending", State: "done", Amount: "1000",
		}}, []*ledger.Entry{routed}},
		"none": {query{Filter: filter{Amount: "7"}}, nil},
	} {
		page := w.find(c.q)
		var want []string
		for _, e := range c.want {
			want = append(want, e.ID)
		}
		if got := idsOf(page); !slices.Equal(got, want) || page.Continue != "" {
			t.Errorf("%s: %v, want %v; continue %q", name, got, want, page.Continue)
		}
	}
}

// Each transaction is on one page, in the order of time, also if others are created between two pages.
func TestPagesHaveEachTransactionOnce(t *testing.T) {
	w := newWorld(t, 1, 5, 3)
	var want []string
	const perDay = 700
	for _, begin := range []time.Time{now.Add(-24 * time.Hour), now.Add(-time.Hour)} {
		for i := range perDay {
			e := w.add(i%3, begin.Add(time.Duration(i)*time.Second))
			want = append(want, e.ID)
		}
	}
	slices.Reverse(want)
	later := now
	got, pages := w.findAll(search.Query{Since: "yesterday"}, func() {
		later = later.Add(time.Second)
		w.shops[0].SetDayShards(4)
		for i := range 40 {
			w.add(i%3, later)
		}
		w.shops = append(w.shops, &merchant.Profile{ID: "new", Name: "New"})
	})
	if !slices.Equal(got, want) {
		t.Errorf("%d found on %d pages, want %d: %v", len(got), len(pages), len(want), got)
	}
	for i, page := range pages[1:] {
		if before := pages[i].SearchedUntil; page.SearchedUntil.After(before) {
			t.Errorf("page %d searched until %s, and the page before until %s", i+1, page.SearchedUntil, before)
		}
	}
	if last := pages[len(pages)-1]; !last.SearchedUntil.Equal(now.Truncate(24 * time.Hour).Add(-24 * time.Hour)) {
		t.Errorf("the last page searched until %s", last.SearchedUntil)
	}
}

// A page that selects little stops at its calls, and says how far it came. No selected transaction is skipped.
func TestPageStopsAtCalls(t *testing.T) {
	w := newWorld(t, 2)
	var want []string
	const count, every = 4000, 500
	for i := range count {
		e := w.add(0, now.Add(-time.Duration(i)*time.Second), func(e *ledger.Entry) {
			if i%every == 0 {
				e.Amount.Minor = 1005
			}
		})
		if i%every == 0 {
			want = append(want, e.ID)
		}
	}
	q := query{Filter: filter{Amount: "1005"}}
	first := w.find(q)
	if first.Calls != search.MaxCalls || first.Continue == "" || len(first.Entries) < 2 {
		t.Errorf("the first page: %d calls, %d rows, continue %q", first.Calls, len(first.Entries), first.Continue)
	}
	oldest := first.Entries[len(first.Entries)-1].CreatedAt
	if !first.SearchedUntil.Before(oldest) || first.SearchedUntil.Before(oldest.Add(-every*time.Second)) {
		t.Errorf("searched until %s, and the oldest is of %s", first.SearchedUntil, oldest)
	}
	before := w.ledger.CallCount(storetest.Day) + w.ledger.CallCount(storetest.GetBatch)
	got, pages := w.findAll(q, func() {})
	calls := 0
	for _, page := range pages {
		calls += page.Calls
	}
	made := w.ledger.CallCount(storetest.Day) + w.ledger.CallCount(storetest.GetBatch) - before
	if !slices.Equal(got, want) || calls-1 != made { // one call read the merchants
		t.Errorf("found %v, want %v; %d calls, made %d", got, want, calls, made)
	}
}

// More partitions than one page has calls: the pages continue, in the order of time.
func TestManyMerchants(t *testing.T) {
	w := newWorld(t, slices.Repeat([]int{1}, 50)...)
	var want []string
	for i := range 30 {
		want = append(want, w.add(i, now.Add(-time.Duration(i)*time.Minute)).ID)
	}
	got, pages := w.findAll(search.Query{}, func() {})
	if !slices.Equal(got, want) || len(pages) < 3 {
		t.Errorf("%d pages: %v, want %v", len(pages), got, want)
	}
	if page := newWorld(t).find(search.Query{}); page.Continue != "" || len(page.Entries) > 0 {
		t.Errorf("a deployment without merchants: %+v", page)
	}
}

func TestRefusedQueries(t *testing.T) {
	w := newWorld(t, 1)
	for name, c := range map[string]struct {
		q    search.Query
		want string
	}{
		"only the payer":  {query{Filter: filter{Payer: "34"}, Since: "10:00"}, "another filter"},
		"one digit":       {query{Filter: filter{Payer: "4", Amount: "1"}}, "the last 2 to 4 digits"},
		"a whole number":  {query{Filter: filter{Payer: "0707072034", Amount: "1"}}, "last 2 to 4 digits"},
		"letters":         {query{Filter: filter{Payer: "ab", Amount: "1"}}, "the last 2 to 4 digits"},
		"unknown kind":    {query{Filter: filter{Kind: "payment"}}, `kind "payment" is not one of`},
		"operator":        {query{Filter: filter{Operator: "mtm"}}, `operator "mtm" is not one of`},
		"platform":        {query{Filter: filter{Platform: "momo"}}, `platform "momo" is not one of`},
		"country":         {query{Filter: filter{Country: "FR"}}, `country "FR" is not one of CI`},
		"channel":         {query{Filter: filter{Channel: "app"}}, `channel "app" is not one of`},
		"state as status": {query{Filter: filter{Status: "unknown"}}, `status "unknown" is not one of`},
		"status as state": {query{Filter: filter{State: "pending"}}, `state "pending" is not one of`},
		"amount":          {query{Filter: filter{Amount: "1,005"}}, `amount "1,005" is not an amount`},
		"no time":         {query{Since: "noon"}, `since: "noon" is not a day`},
		"no hour":         {query{Until: "25:00"}, `until: "25:00" is not a day`},
		"no range":        {query{Since: "11:00", Until: "10:00"}, "the time range is empty"},
		"in the future":   {query{Since: "23:00"}, "the time range is empty"},
	} {
		c.q.Now = now
		_, err := search.Find(context.Background(), w.ledger, w.merchants, c.q)
		if err == nil || !errors.Is(err, output.ErrUsage) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "0707072034") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A continuation that is torn, of another search or of another range is refused.
func TestRefusedContinuations(t *testing.T) {
	w := newWorld(t, 1, 2)
	for i := range 3 * search.MaxRows {
		w.add(i%2, now.Add(-time.Duration(i)*time.Second))
	}
	q := query{Filter: filter{Amount: "1000", Payer: "34"}, Since: "10:00", Now: now}
	token := w.find(q).Continue
	for name, c := range map[string]struct {
		token, want string
		change      func(*search.Query)
	}{
		"half":          {token[:len(token)/2], "damaged or not whole", nil},
		"one character": {strings.Replace(token, token[20:21], "_", 1) + "A", "damaged or not whole", nil},
		"a word":        {"TOKEN", "damaged or not whole", nil},
		"spaces":        {"  ", "damaged or not whole", nil},
		"a line end":    {token + "\n", "", nil}, // as it is copied
		"too long":      {strings.Repeat("A", 1<<20), "damaged or not whole", nil},
		"of another filter": {token, "of another search", func(q *search.Query) {
			q.Amount = "999"
		}},
		"of another beginning": {token, "of another search", func(q *search.Query) { q.Since = "09:00" }},
		"of an earlier end":    {token, "of another search", func(q *search.Query) { q.Until = "11:00" }},
		"the same range":       {token, "", func(q *search.Query) { q.Until = "today" }},
		"without a range":      {token, "", func(q *search.Query) { q.Since = "" }},
		"later":                {token, "", func(q *search.Query) { q.Now = now.Add(time.Hour) }},
	} {
		next := q
		next.Continue = c.token
		if c.change != nil {
			c.change(&next)
		}
		page, err := search.Find(context.Background(), w.ledger, w.merchants, next)
		switch {
		case c.want == "" && (err != nil || len(page.Entries) != search.MaxRows):
			t.Errorf("%s: %d rows, %v", name, len(page.Entries), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// throttled leaves some keys of each batch unread.
type throttled struct {
	*storetest.Ledger
	read int // how many keys of a batch are read
}

func (s throttled) GetBatch(
	ctx context.Context, keys []ledger.Key,
) (map[ledger.Key]*ledger.Entry, []ledger.Key, error) {
	count := min(s.read, len(keys))
	found, _, err := s.Ledger.GetBatch(ctx, keys[:count])
	return found, keys[count:], err
}

// A table that throttles ends a page early. The next page begins at the first entry that was not read.
func TestThrottledTable(t *testing.T) {
	w := newWorld(t, 2)
	var want, got []string
	for i := range 150 {
		want = append(want, w.add(0, now.Add(-time.Duration(i)*time.Second)).ID)
	}
	q := search.Query{Now: now}
	for range len(want) {
		page, err := search.Find(context.Background(), throttled{w.ledger, 40}, w.merchants, q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, idsOf(page)...)
		if q.Continue = page.Continue; q.Continue == "" {
			break
		}
		if !page.Throttled {
			t.Errorf("a page with %d rows is not marked", len(page.Entries))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	_, err := search.Find(context.Background(), throttled{w.ledger, 0}, w.merchants, search.Query{Now: now})
	if err == nil || !strings.Contains(err.Error(), "throttles") {
		t.Errorf("nothing was read: %v", err)
	}
	w.ledger.Err = errors.New("no response")
	if _, err := search.Find(context.Background(), w.ledger, w.merchants, q); !errors.Is(err, w.ledger.Err) {
		t.Errorf("no response: %v", err)
	}
}

func ExampleParseRange() {
	r, err := search.ParseRange("10:30", "", now)
	fmt.Println(r.Since.Format(time.RFC3339), r.Until.Format(time.RFC3339Nano), err)
	// Output: 2026-03-01T10:30:00Z 2026-03-01T12:00:00.001Z <nil>
}
