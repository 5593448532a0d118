package console

import (
	"slices"
)

// searchFilters are the flags of find beside the value, as the fields of the form.
var searchFilters = []string{
	"merchant", "kind", "operator", "platform", "country", "channel", "status", "state", "amount", "payer",
	"since", "until",
}

// searchPage is the data of the search.
type searchPage struct {
	Fields []filter
	Asked  bool
	Table  table
	Until  string // how far the search came
	More   string // the address of the next page
	Notes  []string
	Logs   string // the command that finds the log lines of a request id
}

type filter struct{ Name, Value string }

// loadSearch runs find with the value and the filters that were typed.
func loadSearch(q *query) any {
	s := searchPage{}
	line, value := []string{"find"}, q.form.Get("q")
	kept := []string{"q", value}
	for _, name := range searchFilters {
		typed := q.form.Get(name)
		s.Fields = append(s.Fields, filter{name, text(typed)})
		if typed != "" {
			line, kept = append(line, "--"+name+"="+typed), append(kept, name, typed)
		}
	}
	if from := q.form.Get("continue"); from != "" {
		line = append(line, "--continue="+from)
	}
	if s.Asked = value != "" || len(line) > 1; !s.Asked {
		return s
	}
	if value != "" {
		line = append(line, "--", value)
	}
	read := q.read // find stops at 20 calls if it has filters
	if value != "" {
		read = q.survey
	}
	found := read(line...)
	l := listing{title: "found", within: "transactions", columns: transactionColumns}
	if field(found.Value, "transactions") == nil {
		l.within, l.columns = "matches", append(slices.Clone(transactionColumns), column{"found_by", ""})
	}
	s.Table = l.arrange(found)
	s.Until, s.Logs = text(field(found.Value, "searched_until")), text(field(found.Value, "log_command"))
	if next := raw(field(found.Value, "continue")); next != "" {
		s.More = address("/search", append(kept, "continue", next)...)
	}
	items, _ := field(found.Value, "searched").([]any)
	for _, item := range items {
		s.Notes = append(s.Notes, text(item))
	}
	return s
}
