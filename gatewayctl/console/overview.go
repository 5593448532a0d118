package console

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
)

// overviewPage is the data of the overview.
type overviewPage struct {
	Day       string
	Days      []closedDay
	Counts    result // of the day
	Stored    result // the counts of closed days
	Partial   bool
	Missing   []string // the merchants whose day is not counted
	Groups    []group
	Ages      []bar // of what waits for operators
	Waiting   result
	Attention table
	Waits     []bar // what waits for a person, by its kind
	Circuits  table
	Notified  table
}

// closedDay is a day with its stored counts.
type closedDay struct {
	Day       string
	IsToday   bool
	IsCounted bool // of each merchant
	tally
}

// Tally are the numbers of the day.
func (d closedDay) Tally() tally { return d.tally }

// Acts count the day.
func (d closedDay) Acts() []act {
	return []act{{"act.count", []string{"counts", "--day=" + d.Day}, "", nil}}
}

// group is a breakdown of a day's transactions by one field.
type group struct {
	Name string // a text key
	Rows []tally
}

// tally counts transactions of one value. Amounts are those of the succeeded ones, in minor units.
type tally struct {
	Value                         string
	Total, Good, Bad, Open, Doubt int64
	Amounts                       map[string]int64
	Text                          string // of the amounts
}

// Rate is the share of the decided ones that succeeded, in per mille; -1 for none.
func (t tally) Rate() int64 {
	if t.Good+t.Bad == 0 {
		return -1
	}
	return t.Good * 1000 / (t.Good + t.Bad)
}

// add adds the numbers of a count of the tool.
func (t *tally) add(row map[string]any) {
	t.Total += number(row["number"])
	t.Good += number(row["succeeded"])
	t.Bad += number(row["failed"])
	t.Open += number(row["pending"])
	t.Doubt += number(row["unknown"])
	amounts, _ := row["amounts"].(map[string]any)
	for currency, minor := range amounts {
		if t.Amounts == nil {
			t.Amounts = map[string]int64{}
		}
		t.Amounts[currency] += number(minor)
	}
}

// amountText is the sum by currency.
func (t *tally) amountText(p printer) string {
	text := ""
	for _, currency := range slices.Sorted(maps.Keys(t.Amounts)) {
		exponent, _ := market.CurrencyExponent(currency)
		if text != "" {
			text += ", "
		}
		text += p.Amount(money.Format(t.Amounts[currency], exponent)) + "\u00a0" + currency
	}
	return text
}

// share is a part of a tally's bar, in percent of its width.
type share struct {
	Class     string
	At, Width float64
}

// sharesOf are the parts of a tally's bar.
func sharesOf(t tally) (all []share) {
	at := 0.0
	for _, part := range []struct {
		class string
		count int64
	}{{"good", t.Good}, {"open", t.Open}, {"doubt", t.Doubt}, {"bad", t.Bad}} {
		width := 100 * float64(part.count) / float64(max(t.Total, 1))
		all = append(all, share{part.class, at, width})
		at += width
	}
	return all
}

// bar is a number with its share of the largest one.
type bar struct {
	Label string // a text key
	Count int64
	Share int64 // percent
}

func bars(counts map[string]int64, order []string, prefix string) (all []bar) {
	largest := int64(1)
	for _, n := range counts {
		largest = max(largest, n)
	}
	for _, label := range order {
		all = append(all, bar{prefix + label, counts[label], counts[label] * 100 / largest})
	}
	return all
}

// groupFields are the breakdowns of a day, by the fields of a count.
var groupFields = []string{"operator", "country", "operation"}

// waitingAges are the ages of what waits for operators, as unknown waiting has them.
var waitingAges = []string{"under_minute", "under_ten_minutes", "under_hour", "under_day", "older"}

// circuitsNotClosed are the circuits that the overview shows.
func circuitsNotClosed() listing {
	open := circuitList
	open.acts, open.columns = nil, circuitList.columns[:6]
	open.keep = func(row map[string]any) bool { return raw(row["state"]) != "closed" }
	return open
}

// overviewDays is how many days the overview has.
const overviewDays = 7

// loadOverview counts the transactions of a day, and shows what is not as it should be.
func loadOverview(q *query) any {
	o := overviewPage{Day: q.form.Get("day")}
	today := q.now().UTC()
	for back := range overviewDays {
		o.Days = append(o.Days, closedDay{Day: today.AddDate(0, 0, -back).Format(time.DateOnly), IsToday: back == 0})
	}
	if !slices.ContainsFunc(o.Days, func(d closedDay) bool { return d.Day == o.Day }) {
		o.Day = o.Days[0].Day
	}
	parts := []func(*query){
		o.count, o.readStored, o.readAges, o.readNotifications,
		func(q *query) {
			short := attentionList
			short.acts, short.columns = nil, short.columns[:5]
			o.Attention = q.table(short)
		},
		func(q *query) { o.Circuits = q.table(circuitsNotClosed()) },
	}
	q.parallel(len(parts), func(i int) { parts[i](q) })
	waits := map[string]int64{}
	for _, line := range list(o.Attention.Result.Value) {
		waits[raw(line["what"])]++
	}
	o.Waits = bars(waits, slices.Sorted(maps.Keys(waits)), "v.")
	return o
}

// count reads the counts of the day: the tool counts it again. The table of days shows the stored counts.
func (o *overviewPage) count(q *query) {
	o.Counts = q.survey("counts", "--day="+o.Day)
	day := o.Counts.Value
	o.Partial, _ = field(day, "partial").(bool)
	var rows []map[string]any
	for _, m := range list(field(day, "merchants")) {
		rows = append(rows, list(m["rows"])...)
	}
	names, _ := field(day, "not_counted").([]any)
	for _, name := range names {
		o.Missing = append(o.Missing, text(name))
	}
	for _, name := range groupFields {
		byValue := map[string]*tally{}
		for _, row := range rows {
			value := cmp.Or(text(row[name]), "-")
			if byValue[value] == nil {
				byValue[value] = &tally{Value: value}
			}
			byValue[value].add(row)
		}
		g := group{Name: "c." + name}
		for _, value := range slices.Sorted(maps.Keys(byValue)) {
			found := byValue[value]
			found.Text = found.amountText(q.printer)
			g.Rows = append(g.Rows, *found)
		}
		o.Groups = append(o.Groups, g)
	}
}

// readStored reads the stored counts of the closed days.
func (o *overviewPage) readStored(q *query) {
	o.Stored = q.read("counts", "--since="+o.Days[overviewDays-1].Day, "--until="+o.Days[1].Day)
	for _, stored := range list(o.Stored.Value) {
		at := slices.IndexFunc(o.Days, func(d closedDay) bool { return d.Day == raw(stored["day"]) })
		if at < 0 {
			continue
		}
		missing, _ := stored["not_counted"].([]any)
		o.Days[at].IsCounted = len(missing) == 0
		for _, m := range list(stored["merchants"]) {
			total, _ := m["total"].(map[string]any)
			o.Days[at].add(total)
		}
		o.Days[at].Text = o.Days[at].amountText(q.printer)
	}
}

// readAges counts what waits for operators by its age.
func (o *overviewPage) readAges(q *query) {
	o.Waiting = q.survey(waitingList.line...)
	ages := map[string]int64{}
	for _, row := range list(o.Waiting.Value) {
		for _, age := range waitingAges {
			ages[age] += number(row[age])
		}
	}
	o.Ages = bars(ages, waitingAges, "c.")
}

// readNotifications sums the endpoints of each merchant.
func (o *overviewPage) readNotifications(q *query) {
	names := q.read(merchantList.line...)
	merchants := list(names.Value)
	results := make([]result, len(merchants))
	q.parallel(len(merchants), func(i int) {
		results[i] = q.survey("endpoint", "list", "--", raw(merchants[i]["name"]))
	})
	sums, last := []any{}, names
	for i, r := range results {
		sum := map[string]any{"name": merchants[i]["name"]}
		for _, name := range []string{"waiting", "parked", "dead_letters"} {
			count := int64(0)
			for _, endpoint := range list(r.Value) {
				count += number(endpoint[name])
			}
			sum[name] = count
		}
		sums = append(sums, sum)
		if i == 0 || r.Error != "" || r.Runs || r.Old {
			last = r
		}
	}
	last.Value = sums
	o.Notified = listing{
		title: "notified", columns: []column{{"name", "shop"}, {"waiting", ""}, {"parked", ""}, {"dead_letters", ""}},
	}.arrange(last)
}
