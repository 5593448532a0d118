package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mobilegateway/gatewayctl/output"
	classes "mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/shared/operator"
)

// exitDifferent is the exit code of a reconciliation that has found differences: its result is complete.
const exitDifferent = 1

// maxDifferences is how many differences the page shows. The command line with --csv has all.
const maxDifferences = 500

// reconciliationPage is the data of the page of reconciliations: its forms, and the result of the one that was sent.
type reconciliationPage struct {
	Forms   []commandForm
	Sent    string // the command of the form that was sent; "" for none
	Line    string // its command line, for a person
	Problem string // the field that is wrong; "" for none
	Why     string // it is wrong, as a text key
	Done    bool   // the command ran, and has a result
	Result  result
	Facts   []fact
	Tables  []table
	// Differences is the number of all, and Left of those that are not shown.
	Differences, Left int64
}

// commandForm is a form with the flags of a command.
type commandForm struct {
	Name   string // of the command
	Fields []formField
}

// formField is a flag of a command. Its label has the text key filter.<name>.
type formField struct {
	Name     string
	Kind     string   // text, date, or path: of a file of this machine
	Choices  []string // of a text; nil for any
	Required bool
	Value    string
}

// commandForms are the forms of the page, with what was entered in the one that was sent.
func commandForms(q *query) []commandForm {
	formats := []string{}
	for _, f := range statement.Formats() {
		formats = append(formats, f.Name)
	}
	yesterday := q.now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	forms := []commandForm{
		{"reconcile", []formField{
			{Name: "platform", Kind: "text", Choices: operator.Platforms(), Required: true},
			{Name: "account", Kind: "text"},
			{Name: "day", Kind: "date", Required: true, Value: yesterday},
			{Name: "statement", Kind: "path", Required: true},
			{Name: "format", Kind: "text", Choices: formats, Required: true},
			{Name: "mapping", Kind: "path"},
		}},
		{"settlement", []formField{
			{Name: "day", Kind: "date", Required: true, Value: yesterday},
			{Name: "merchant", Kind: "text"},
			{Name: "reconciled", Kind: "path"},
		}},
	}
	for _, f := range forms {
		for i, field := range f.Fields {
			if q.form.Get("command") == f.Name {
				f.Fields[i].Value = q.form.Get(field.Name)
			}
		}
	}
	return forms
}

// loadReconciliation shows the forms, and the command line of the one that was sent.
func loadReconciliation(q *query) any {
	p, words := preparedReconciliation(q)
	if p.Sent != "" {
		p.Line = q.console.reader.line(words...)
	}
	return p
}

// preparedReconciliation returns the page without a result, and the words of the command that its form states.
func preparedReconciliation(q *query) (p reconciliationPage, words []string) {
	p.Forms = commandForms(q)
	at := slices.IndexFunc(p.Forms, func(f commandForm) bool { return f.Name == q.form.Get("command") })
	if at < 0 {
		return p, nil
	}
	p.Sent, words = p.Forms[at].Name, []string{p.Forms[at].Name}
	for _, f := range p.Forms[at].Fields {
		switch {
		case f.Value == "" && f.Required:
			p.Problem, p.Why = f.Name, "reconcile.required"
		case f.Kind == "path" && f.Value != "" && !mayBeFile(f.Value):
			p.Problem, p.Why = f.Name, "reconcile.path"
		}
		if f.Value != "" {
			words = append(words, "--"+f.Name+"="+f.Value)
		}
	}
	return p, words
}

// mayBeFile reports whether a path is a whole one, and not that of a device or a folder. The command reports a file
// that does not exist.
func mayBeFile(path string) bool {
	info, err := os.Stat(path) // the person's own files, with the person's own rights
	return filepath.IsAbs(path) && (err != nil || info.Mode().IsRegular())
}

// serveReconciliation runs a reconciliation or a settlement. Both leave an audit record, so the console must allow
// changes. Only POST comes here.
func (c *Console) serveReconciliation(w http.ResponseWriter, r *http.Request, q *query) {
	if !c.AllowChanges {
		c.refuse(w, q, http.StatusForbidden, "error.read-only")
		return
	}
	q.form = copyForm(r.PostForm)
	q.form.Del("token")
	q.path += "?" + q.form.Encode()
	p, words := preparedReconciliation(q)
	if p.Sent == "" {
		c.refuse(w, q, http.StatusBadRequest, "error.act")
		return
	}
	p.Line = c.reader.line(words...)
	if p.Problem == "" {
		// A closed tab must not leave a folder of parts.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actTimeout)
		defer cancel()
		p.run(ctx, q, words)
	}
	c.render(w, q, http.StatusOK, page{name: "reconciliation", body: "reconciliation"}, p)
}

// run runs the command, and arranges its result.
func (p *reconciliationPage) run(ctx context.Context, q *query, words []string) {
	rowsName, good := "rows", []int{exitDone}
	if p.Sent == "reconcile" {
		rowsName, good = "differences", []int{exitDone, exitDifferent}
	}
	p.Result = q.console.reader.executeLong(ctx, words, rowsName, good)
	if p.Done = p.Result.Error == ""; !p.Done {
		return
	}
	value := p.Result.Value
	if p.Sent == "settlement" {
		p.Facts, p.Tables = facts(value, settlementFacts), []table{p.part(owedList, value)}
		return
	}
	counts, _ := field(value, "counts").(map[string]any)
	counted := []any{}
	for _, class := range classes.Classes() {
		n := number(counts[string(class)])
		if n == 0 {
			continue
		}
		counted = append(counted, map[string]any{"class": string(class), "count": n})
		if class != classes.Equal {
			p.Differences += n
		}
	}
	for _, total := range list(field(value, "totals")) {
		total["difference_by_class"] = byClass(q.printer, total["difference_by_class"])
	}
	differences := list(field(value, "differences"))
	for _, row := range differences {
		parts, _ := row["differs"].([]any)
		for i, part := range parts {
			parts[i] = q.T("c." + text(part))
		}
	}
	p.Left = p.Differences - int64(len(differences))
	rows := differenceList
	if !slices.ContainsFunc(differences, func(row map[string]any) bool { return len(actOfCommand(row)) > 0 }) {
		rows.acts = nil
	}
	p.Facts = facts(value, reconciliationFacts)
	p.Tables = []table{
		p.part(totalList, value), p.part(classList, map[string]any{"classes": counted}), p.part(rows, value),
		p.part(statementList, value),
	}
}

// part is a table of the result. The page shows the command line and its messages once.
func (p *reconciliationPage) part(l listing, value any) table {
	return l.arrange(result{At: p.Result.At, Value: value})
}

// byClass is the difference of each class, as texts.
func byClass(p printer, value any) any {
	parts, _ := value.(map[string]any)
	all := []string{}
	for _, class := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, p.Word(class)+" "+p.Amount(parts[class]))
	}
	return output.JoinComma(all)
}

// executeLong runs a command whose document ends with a long list, and keeps the list's first rows. A result with one
// of the good exit codes has no error.
func (r *reader) executeLong(ctx context.Context, arguments []string, rows string, good []int) result {
	out, stdout, code := r.output(ctx, arguments)
	if out.Error != "" {
		return out
	}
	document, err := decodeHead(stdout, rows, maxDifferences)
	out.Value = document
	switch {
	case !slices.Contains(good, code) || document["error"] != nil || ctx.Err() != nil, err != nil && code != exitDone:
		out = out.failed(ctx)
	case err != nil:
		out.Error = notJSON(err)
	default:
		return out
	}
	out.Value = nil
	return out
}

// decodeHead decodes an object up to the first rows of a list, which is its last field. It reads no further, so that
// the text may be cut there.
func decodeHead(from io.Reader, name string, most int) (map[string]any, error) {
	object, d := map[string]any{}, json.NewDecoder(from)
	d.UseNumber()
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return object, errors.Join(err, errors.New("it is not an object"))
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return object, err
		}
		if key == name {
			object[name], err = decodeRows(d, most)
			return object, err
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return object, err
		}
		object[key.(string)] = value // a key is a string
	}
	return object, nil
}

// decodeRows decodes the first rows of a list.
func decodeRows(d *json.Decoder, most int) (rows []any, err error) {
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return nil, errors.Join(err, errors.New("its rows are not a list"))
	}
	for len(rows) < most && d.More() {
		var row any
		if err := d.Decode(&row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

var reconciliationFacts = []column{
	{"platform", ""}, {"account", ""}, {"day", ""}, {"from", "time"}, {"to", "time"}, {"transactions_compared", ""},
}

var totalList = listing{
	title: "totals", within: "totals",
	columns: []column{
		{"merchant", "merchant"}, {"currency", ""}, {"theirs_count", ""}, {"theirs", "amount"}, {"ours_count", ""},
		{"ours", "amount"}, {"difference", "amount"}, {"difference_by_class", ""}, {"fees", "amount"},
	},
}

var classList = listing{
	title: "classes", within: "classes", columns: []column{{"class", "word"}, {"count", ""}},
}

var differenceList = listing{
	title: "differences", within: "differences", most: maxDifferences,
	columns: []column{
		{"class", "word"}, {"merchant", "merchant"}, {"kind", "word"}, {"id", "transaction"}, {"line", ""},
		{"their_reference", ""}, {"their_order_id", ""}, {"their_amount", "amount"}, {"their_status", "word"},
		{"our_amount", "amount"}, {"our_status", "word"}, {"differs", ""}, {"fee", "amount"},
		{"expected_fee", "amount"}, {"proposal", ""}, {"command", "command"},
	},
	acts: actOfCommand,
}

var statementList = listing{
	title: "statements", within: "statements",
	columns: []column{{"file", "code"}, {"rows", ""}, {"skipped", ""}, {"sha256", "code"}},
}

var settlementFacts = []column{{"day", ""}, {"closed", "word"}}

var owedList = listing{
	title: "owed", within: "totals",
	columns: []column{
		{"merchant", "merchant"}, {"currency", ""}, {"operator", ""}, {"count", ""}, {"all", "amount"},
		{"reconciled_count", ""}, {"reconciled", "amount"}, {"difference", "amount"}, {"fees", "amount"},
	},
}
