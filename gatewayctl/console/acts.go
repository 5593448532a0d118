package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// allowedActs are the first words of the commands that the console runs with --yes. None of them shows a secret, and
// none of them reads a file.
var allowedActs = [][]string{
	{"attention", "close"}, {"deliveries", "replay"}, {"deliveries", "send"}, {"endpoint", "enable"},
	{"endpoint", "disable"}, {"unknown", "resolve"}, {"unknown", "lookup"}, {"operator", "circuit", "open"},
	{"operator", "circuit", "close"}, {"merchant", "suspend"}, {"merchant", "resume"}, {"keys", "add"},
	{"counts"},
}

// flagsOfActs are the flags that an act may have. No other flag reaches the tool: another table, for example.
var flagsOfActs = []string{
	"--url", "--host", "--all", "--as", "--day", "--operation", "--for", "--merchant", "--from", "--to", "--since",
	"--dead-letters", "--former-address", "--operator-reference",
}

// isAct reports whether the console may run a command line with --yes.
func isAct(words []string) bool {
	isAllowed := slices.ContainsFunc(allowedActs, func(first []string) bool {
		return len(words) >= len(first) && slices.Equal(words[:len(first)], first)
	})
	for i, word := range words {
		if word == "--" {
			words = words[:i]
			break
		}
	}
	return isAllowed && !slices.ContainsFunc(words, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return strings.HasPrefix(word, "-") && !slices.Contains(flagsOfActs, name)
	})
}

// actPage is the data of the page of an act: its dry run, or what it did.
type actPage struct {
	Words   []string
	Line    string // for a person
	Result  result
	Applied bool
	Reason  string
	Missing bool // the reason
	Facts   []fact
	Back    string
}

// actTimeout bounds one act. It ends by its own limits before, except one over very many transactions.
const actTimeout = 10 * time.Minute

// serveAct runs the dry run of an act, and with the button apply the act itself. Only POST comes here.
func (c *Console) serveAct(w http.ResponseWriter, r *http.Request, q *query) {
	words := r.PostForm["word"]
	if chosen := r.PostFormValue("choice"); chosen != "" {
		words = withFlags(words, r.PostFormValue("flag")+"="+chosen)
	}
	if !c.AllowChanges {
		c.refuse(w, q, http.StatusForbidden, "error.read-only")
		return
	}
	if !isAct(words) {
		c.refuse(w, q, http.StatusBadRequest, "error.act")
		return
	}
	p := actPage{Words: words, Reason: strings.TrimSpace(r.PostFormValue("reason")), Back: backOf(r)}
	apply := r.PostFormValue("apply") != ""
	p.Missing = apply && p.Reason == ""
	run := words
	p.Line = c.reader.line(withFlags(words, "--yes", "--reason=REASON")...)
	if p.Applied = apply && !p.Missing; p.Applied {
		run = withFlags(words, "--yes", "--reason="+p.Reason)
		p.Line = c.reader.line(run...)
	}
	// A closed tab must not interrupt a change.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actTimeout)
	defer cancel()
	p.Result = c.reader.execute(ctx, run)
	if object, isObject := p.Result.Value.(map[string]any); isObject {
		var names []column
		for name, value := range object {
			if len(list(value)) > 0 {
				continue
			}
			names = append(names, column{name, ""})
		}
		slices.SortFunc(names, func(a, b column) int { return strings.Compare(a.Field, b.Field) })
		p.Facts = facts(object, names)
	}
	c.render(w, q, http.StatusOK, page{name: "act", body: "act"}, p)
}

// backOf is the page from which a person came, as its form states it: a path of the console, never another address.
func backOf(r *http.Request) string {
	back := r.PostFormValue("back")
	if !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "//") || strings.ContainsAny(back, "\\\r\n") {
		return "/"
	}
	return back
}
