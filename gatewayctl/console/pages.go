package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"mobilegateway/gatewayctl/session"
)

// page is one page of the console. Its title has the text key title.<name>.
type page struct {
	name    string // also its path; the overview is at /
	body    string // the template
	hidden  bool   // not in the navigation
	sandbox bool   // only on the local run
	live    bool   // it renews itself on the local run
	load    func(q *query) any
}

// pages are all pages, in the order of the navigation.
var pages = []page{
	{name: "overview", body: "overview", live: true, load: loadOverview},
	{name: "attention", body: "list", live: true, load: lists(attentionList)},
	{name: "search", body: "search", load: loadSearch},
	{name: "transaction", body: "transaction", hidden: true, live: true, load: loadTransaction},
	{name: "operators", body: "list", live: true, load: lists(waitingList, circuitList, healthList)},
	{name: "deliveries", body: "deliveries", live: true, load: loadDeliveries},
	{name: "reconciliation", body: "reconciliation", load: loadReconciliation},
	{name: "merchants", body: "list", load: lists(merchantList)},
	{name: "merchant", body: "merchant", hidden: true, load: loadMerchant},
	{name: "accounts", body: "list", load: lists(accountList, serviceList)},
	{name: "keys", body: "list", load: lists(keyList("tokens"), keyList("callbacks"), keyList("webhooks"))},
	{name: "audit", body: "list", load: lists(verifyList, auditList)},
	{name: "sandbox", body: "sandbox", sandbox: true, live: true, load: loadSandbox},
}

var waitingList = listing{
	title: "waiting", line: []string{"unknown", "waiting"}, survey: true,
	columns: []column{
		{"platform", ""}, {"account", ""}, {"kind", "word"}, {"waiting", ""}, {"unknown", ""}, {"under_minute", ""},
		{"under_ten_minutes", ""}, {"under_hour", ""}, {"under_day", ""}, {"older", ""}, {"oldest", "time"},
		{"next_lookup_at", "time"},
	},
	acts: func(row map[string]any) []act {
		if raw(row["kind"]) != "pay" {
			return nil
		}
		account := raw(row["platform"]) + "/" + raw(row["account"])
		return []act{{"act.lookup-all", []string{"unknown", "lookup", "--", account}, "", nil}}
	},
}

// healthList has what waits for a person because of an operator.
var healthList = func() listing {
	l := attentionList
	l.title, l.keep = "health", func(row map[string]any) bool {
		return raw(row["what"]) == "lookups-fail" || raw(row["what"]) == "credentials" ||
			raw(row["what"]) == "unknown-outcome"
	}
	return l
}()

// path is the address of a page.
func (p page) path() string {
	if p.name == "overview" {
		return "/"
	}
	return "/" + p.name
}

// listing is a table of what one command line returns.
type listing struct {
	title   string // a text key
	line    []string
	survey  bool   // it may read very many transactions: it runs in the background
	within  string // the field of the JSON object that has the list; "" if the JSON is the list
	newest  bool   // the last row comes first
	most    int    // rows that are shown; maxRows for 0
	columns []column
	acts    func(row map[string]any) []act
	keep    func(row map[string]any) bool // nil for all rows
	ends    func(row map[string]any) bool // the rows that a person may end at the sandbox; nil for none
}

// column is a field of the rows. Its heading has the text key c.<field>.
type column struct {
	Field string
	As    string // "", time, word, amount, transaction, merchant, detail, command or code
}

// act is a command that changes something. It is shown with its dry run first.
type act struct {
	Label string // a text key
	Words []string
	// Choices are the values of a flag that a person chooses; "" for a fixed command.
	Flag    string
	Choices []string
}

// table is a listing with its rows.
type table struct {
	Title   string
	Result  result
	Columns []column
	Rows    []row
	Left    int // rows that are not shown
	Acts    bool
	Ends    bool
}

type row struct {
	Cells []cell
	Acts  []act
	Ends  string // the key of a payment at the sandbox that a person may end; "" for none
}

type cell struct {
	As    string
	Value any
	Extra any // the currency of an amount, the id of a transaction
}

// maxRows is how many rows a page shows. The command line has all.
const maxRows = 200

// lists returns the load function of a page with tables.
func lists(all ...listing) func(q *query) any {
	return func(q *query) any {
		tables := make([]table, len(all))
		q.parallel(len(all), func(i int) { tables[i] = q.table(all[i]) })
		return tables
	}
}

// table runs the command of a listing and arranges its rows.
func (q *query) table(l listing) table {
	read := q.read
	if l.survey {
		read = q.survey
	}
	return l.arrange(read(l.line...))
}

func (l listing) arrange(from result) table {
	t := table{Title: l.title, Result: from, Columns: l.columns, Acts: l.acts != nil, Ends: l.ends != nil}
	value := from.Value
	if l.within != "" {
		value = field(value, l.within)
	}
	objects := list(value)
	for i := range objects {
		object := objects[i]
		if l.newest {
			object = objects[len(objects)-1-i]
		}
		if l.keep != nil && !l.keep(object) {
			continue
		}
		if len(t.Rows) == cmp.Or(l.most, maxRows) {
			t.Left++
			continue
		}
		r := row{}
		for _, c := range l.columns {
			made := cell{As: c.As, Value: object[c.Field]}
			switch c.As {
			case "amount":
				made.Extra = object[strings.TrimSuffix(c.Field, "amount")+"currency"] // their_currency of their_amount
			case "transaction":
				made.Extra = object["kind"]
			}
			r.Cells = append(r.Cells, made)
		}
		if l.acts != nil {
			r.Acts = l.acts(object)
		}
		if l.ends != nil && l.ends(object) {
			r.Ends = raw(object["key"])
		}
		t.Rows = append(t.Rows, r)
	}
	t.dropEmptyColumns()
	return t
}

// dropEmptyColumns drops the columns in which no row has a text. The first one stays.
func (t *table) dropEmptyColumns() {
	for at := len(t.Columns) - 1; at > 0 && len(t.Rows) > 0; at-- {
		if slices.ContainsFunc(t.Rows, func(r row) bool { return text(r.Cells[at].Value) != "" }) {
			continue
		}
		t.Columns = slices.Delete(slices.Clone(t.Columns), at, at+1)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, at, at+1)
		}
	}
}

var transactionColumns = []column{
	{"created_at", "time"}, {"kind", "word"}, {"id", "transaction"}, {"merchant", "merchant"}, {"state", "word"},
	{"status", "word"}, {"amount", "amount"}, {"country", ""}, {"operator", ""}, {"channel", ""}, {"msisdn", ""},
}

var attentionList = listing{
	title: "waits", line: []string{"attention", "list", "--no-lookup"}, survey: true,
	columns: []column{
		{"since", "time"}, {"what", "word"}, {"merchant", "merchant"}, {"subject", "subject"}, {"detail", "detail"},
		{"command", "command"},
	},
	acts: actOfCommand,
}

// actOfCommand makes an act of the command that a row of the tool has.
func actOfCommand(row map[string]any) []act {
	words := splitLine(raw(row["command"]))
	var kept []string
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "--" + session.LocalFlag, "--yes":
		case "--reason":
			i++
		default:
			kept = append(kept, words[i])
		}
	}
	made := act{Label: "act.end", Words: kept}
	if last := len(kept) - 1; last > 3 && kept[last] == "OUTCOME" {
		made = resolveAct(kept[2], kept[3])
	}
	if !isAct(made.Words) {
		return nil
	}
	return []act{made}
}

// resolveAct is a person's decision about a transaction of a kind.
func resolveAct(kind, id string) act {
	choices := []string{"applied", "not-applied"}
	switch kind {
	case "pay":
		choices = []string{"successful", "failed", "cancelled"}
	case "sms":
		choices = append(choices, "unknowable")
	}
	return act{"act.resolve", []string{"unknown", "resolve", "--", kind, id}, "--as", choices}
}

var circuitList = listing{
	title: "circuits", line: []string{"operator", "status"},
	columns: []column{
		{"account", ""}, {"operation", "word"}, {"state", "word"}, {"since", "time"}, {"probes_from", "time"},
		{"ends", "time"}, {"failures", ""}, {"successes", ""}, {"waiting", ""}, {"why", ""},
	},
	acts: func(row map[string]any) []act {
		account, operation := raw(row["account"]), raw(row["operation"])
		if raw(row["state"]) == "closed" {
			open := []string{"operator", "circuit", "open", "--operation=" + operation, "--for=1h", "--", account}
			return []act{{"act.circuit-open", open, "", nil}}
		}
		return []act{{"act.circuit-close", []string{"operator", "circuit", "close", "--operation=" + operation, "--",
			account}, "", nil}}
	},
}

var merchantList = listing{
	title: "merchants", line: []string{"merchant", "list"},
	columns: []column{
		{"name", "merchant"}, {"status", "word"}, {"created", "time"}, {"operations", ""}, {"countries", ""},
		{"operators", ""},
	},
}

var accountList = listing{
	title: "accounts", line: []string{"operator", "list"},
	columns: []column{{"operator", ""}, {"account", ""}, {"current", "word"}, {"base_url", "code"}},
}

var serviceList = listing{
	title: "services", line: []string{"operator", "route", "list"},
	columns: []column{
		{"operator", ""}, {"country", ""}, {"operation", "word"}, {"channel", ""}, {"platform", ""}, {"account", ""},
		{"by", "word"}, {"merchants", ""},
	},
}

func keyList(ring string) listing {
	return listing{
		title: "keys." + ring, line: []string{"keys", "list", ring},
		columns: []column{
			{"number", ""}, {"added", "time"}, {"signs_from", "time"}, {"signs", "word"}, {"revoked", "time"},
		},
	}
}

var verifyList = listing{
	title: "verified", line: []string{"audit", "verify"}, within: "faults",
	columns: []column{
		{"sequence", ""}, {"fault", "word"}, {"detail", ""}, {"at", "time"}, {"who", ""}, {"what", ""}, {"subject", ""},
		{"outcome", "word"},
	},
}

var auditList = listing{
	title: "changes", line: []string{"audit", "list"}, newest: true,
	columns: []column{
		{"at", "time"}, {"who", ""}, {"what", ""}, {"subject", ""}, {"why", ""}, {"outcome", "word"}, {"detail", ""},
	},
}

var endpointList = []column{
	{"url", "code"}, {"enabled", "word"}, {"waiting", ""}, {"parked", ""}, {"dead_letters", ""}, {"failures", ""},
	{"last_error", "word"}, {"disabled_at", "time"},
}

var notificationColumns = []column{
	{"at", "time"}, {"id", "transaction"}, {"status", "word"}, {"state", "word"}, {"attempts", ""},
	{"delivered_at", "time"}, {"next", "time"}, {"last_error", "word"}, {"last_code", ""}, {"dead_reason", "word"},
}

// facts are the fields of an object that have a value.
func facts(value any, columns []column) (all []fact) {
	for _, c := range columns {
		found := field(value, c.Field)
		if text(found) == "" {
			continue
		}
		f := fact{c.Field, cell{As: c.As, Value: found}}
		if c.As == "amount" {
			f.Cell.Extra = field(value, "currency")
		}
		all = append(all, f)
	}
	return all
}

// address is the address of a page with parameters.
func address(path string, values ...string) string {
	form := url.Values{}
	for i := 0; i+1 < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	return path + "?" + form.Encode()
}

// transactionOf is the address of the transaction that a subject names, such as pay#ShopA_1; "" for another subject.
func transactionOf(subject string) string {
	kind, id, found := strings.Cut(subject, "#")
	if !found || id == "" || showCommands[kind] == "" {
		return ""
	}
	return address("/transaction", "kind", kind, "id", id)
}
