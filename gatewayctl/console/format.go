package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/spreadsheet"
)

// text is a value of a command's JSON as text, without characters that reorder what a reader sees.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return output.EscapeUnprintable(v)
	case []any:
		var texts []string
		for _, item := range v {
			texts = append(texts, text(item))
		}
		return output.JoinComma(texts)
	case map[string]any:
		var texts []string
		for name, item := range v {
			texts = append(texts, output.EscapeUnprintable(name)+" "+text(item))
		}
		slices.Sort(texts)
		return output.JoinComma(texts)
	}
	return fmt.Sprint(value)
}

// cellText is a text in a table. A person may copy the table into a spreadsheet: an apostrophe marks what would run
// there as a formula.
func cellText(value any) string {
	if plain := text(value); plain != "-" { // no value
		return spreadsheet.EscapeFormulas(plain)
	}
	return "-"
}

// raw is a string of a command's JSON as it is, for a link or a command line; "" for another value.
func raw(value any) string {
	s, _ := value.(string)
	return s
}

// field returns a field of an object, nil for none.
func field(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

// list returns the objects of a list.
func list(value any) (objects []map[string]any) {
	items, _ := value.([]any)
	for _, item := range items {
		if object, isObject := item.(map[string]any); isObject {
			objects = append(objects, object)
		}
	}
	return objects
}

// number is an integer of a command's JSON, 0 for another value.
func number(value any) int64 {
	n, _ := value.(json.Number)
	i, _ := n.Int64()
	return i
}

// timeOf is a time of a command's JSON, zero for another value.
func timeOf(value any) time.Time {
	at, err := time.Parse(time.RFC3339, raw(value))
	if err != nil || at.Year() < 2 {
		return time.Time{}
	}
	return at.UTC()
}

// printer formats values in one language.
type printer struct {
	Lang  string
	texts texts
}

// T is the text of a key. A key without a text stays visible.
func (p printer) T(key string, values ...any) string {
	found, known := p.texts[key]
	if !known {
		return strings.TrimPrefix(key, "v.")
	}
	return fmt.Sprintf(found[slices.Index(languages, p.Lang)], values...)
}

// Word is a value of the tool in words: a state, a kind or an event. An unknown one stays as it is.
func (p printer) Word(value any) string {
	word := text(value)
	if _, known := p.texts["v."+word]; known {
		return p.T("v." + word)
	}
	return word
}

// Amount groups the digits of a decimal amount.
func (p printer) Amount(value any) string {
	unsigned, isNegative := strings.CutPrefix(text(value), "-")
	whole, fraction, hasFraction := strings.Cut(unsigned, ".")
	if strings.Trim(whole, "0123456789") != "" {
		return text(value)
	}
	separator, point := ",", "."
	if p.Lang == "fr" {
		separator, point = "\u202f", ","
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + separator + whole[at:]
	}
	if isNegative {
		whole = "-" + whole
	}
	if hasFraction {
		return whole + point + fraction
	}
	return whole
}

// Count is a number with grouped digits.
func (p printer) Count(n any) string { return p.Amount(fmt.Sprint(n)) }

// PerMille is a share in percent with one digit, "" for a negative one.
func (p printer) PerMille(share int64) string {
	if share < 0 {
		return ""
	}
	return p.Amount(fmt.Sprintf("%d.%d", share/10, share%10)) + "\u00a0%"
}

// Time is a time in UTC.
func (p printer) Time(at time.Time) template.HTML {
	if at.IsZero() {
		return ""
	}
	at = at.UTC()
	// Both texts have only digits and marks.
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, //nolint:gosec // no text of a person
		at.Format(time.RFC3339), at.Format("2006-01-02 15:04:05")))
}

// Age is how long ago a time was, in its largest two units.
func (p printer) Age(d time.Duration) string {
	switch d = d.Truncate(time.Second); {
	case d < time.Minute:
		return d.String()
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return p.T("days", int(d/(24*time.Hour)))
}

// splitLine splits a command line of the tool, as session.Command writes it, into its words.
func splitLine(line string) (words []string) {
	var word strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(line); i++ {
		switch char := line[i]; {
		case char == '\'':
			quoted, begun = !quoted, true
		case quoted:
			word.WriteByte(char)
		case char == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			begun = true
		case char == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(char)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
