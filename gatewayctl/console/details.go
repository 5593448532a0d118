package console

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// detail is a sentence of the tool, and its French text.
type detail struct {
	pattern *regexp.Regexp
	french  string
}

// loadDetails reads the table of sentences. Each %s is a value, which both texts have in the same order.
var loadDetails = sync.OnceValue(func() (all []detail) {
	var pairs [][2]string
	table, err := web.ReadFile("web/details.json")
	if err != nil || json.Unmarshal(table, &pairs) != nil {
		return nil // the pages then have the tool's own sentences
	}
	for _, pair := range pairs {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(pair[0]), "%s", "(.+?)")
		all = append(all, detail{regexp.MustCompile("^" + pattern + "$"), pair[1]})
	}
	return all
})

// translate returns the French text of a sentence, "" for an unknown one.
func (p printer) translate(sentence string) string {
	for _, d := range loadDetails() {
		values := d.pattern.FindStringSubmatch(sentence)
		if values == nil || slices.ContainsFunc(values[1:], func(value string) bool {
			return strings.Contains(value, ", ") || strings.Contains(value, "; ")
		}) {
			continue
		}
		made := d.french
		for _, value := range values[1:] {
			made = strings.Replace(made, "%s", p.Word(value), 1)
		}
		return made
	}
	if _, isWord := p.texts["v."+sentence]; isWord {
		return p.Word(sentence)
	}
	return ""
}

// detail returns a detail of the tool in the page's language, and its language. One with an unknown part stays English.
func (p printer) detail(value any) (made, lang string) {
	plain := text(value)
	if p.Lang == languages[0] || plain == "" {
		return plain, languages[0]
	}
	if whole := p.translate(plain); whole != "" {
		return whole, p.Lang
	}
	parts := strings.Split(plain, ", ")
	for i, part := range parts {
		if amount, currency, _ := strings.Cut(part, " "); i == 0 && isAmount(amount, currency) {
			continue
		}
		if parts[i] = p.translate(part); parts[i] == "" {
			return plain, languages[0]
		}
	}
	return strings.Join(parts, ", "), p.Lang
}

// isAmount reports whether a part is an amount, which has no language.
func isAmount(amount, currency string) bool {
	return len(currency) == 3 && strings.Trim(amount, "0123456789.") == ""
}

// Detail is a detail of the tool in the page's language, as far as its sentences are known.
func (p printer) Detail(value any) string {
	made, _ := p.detail(value)
	return cellText(made)
}

// DetailLang is the language of Detail.
func (p printer) DetailLang(value any) string {
	_, lang := p.detail(value)
	return lang
}
