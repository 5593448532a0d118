package output_test

import (
	"bytes"
	"strings"
	"testing"

	"mobilegateway/gatewayctl/output"
)

// write writes a table to a terminal, or to a pipe.
func write(t *testing.T, terminal output.Terminal, rows ...[]string) string {
	t.Helper()
	var text bytes.Buffer
	table := output.Table{}
	for _, row := range rows {
		table = append(table, append([]string{}, row...))
	}
	to := output.CleanWriter{Next: &text, Clean: output.CleanText, Terminal: terminal}
	if err := table.Write(to, ""); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

var list = [][]string{
	{"KEY", "DETAIL", "STATUS", "COMMAND"},
	{"ShopA_1234567890", "a detail that is long, é", "successful", "gatewayctl payment show ShopA_1234567890"},
	{"ShopA_2", "x", "unknown", "gatewayctl payment show ShopA_2"},
}

// A list on a terminal has the terminal's width, as far as nothing is cut that a person copies. A pipe has it whole.
func TestTerminalWidth(t *testing.T) {
	whole := "KEY               DETAIL                    STATUS      COMMAND\n" +
		"ShopA_1234567890  a detail that is long, é  successful  gatewayctl payment show ShopA_1234567890\n" +
		"ShopA_2           x                         unknown     gatewayctl payment show ShopA_2\n"
	for name, c := range map[string]struct {
		columns int
		want    string
	}{
		"pipe": {0, whole},
		"wide": {200, whole},
		"one too narrow": {95, "KEY               DETAIL                   STATUS      COMMAND\n" +
			"ShopA_1234567890  a detail that is long,…  successful  gatewayctl payment show ShopA_1234567890\n" +
			"ShopA_2           x                        unknown     gatewayctl payment show ShopA_2\n"},
		"narrow": {40, "KEY               DETAIL  STATUS  COMMAND\n" +
			"ShopA_1234567890  a det…  succe…  gatewayctl payment show ShopA_1234567890\n" +
			"ShopA_2           x       unkno…  gatewayctl payment show ShopA_2\n"},
	} {
		if got := write(t, output.Terminal{Columns: c.columns}, list...); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	view := [][]string{{"status", "successful"}, {"upstream key", strings.Repeat("k", 50)}}
	if got := write(t, output.Terminal{Columns: 20}, view...); strings.Contains(got, "…") {
		t.Errorf("a view is cut: %s", got)
	}
}

// Colours are for a terminal that wants them, and change no width. No text of a merchant is a colour.
func TestTerminalColours(t *testing.T) {
	got := write(t, output.Terminal{Columns: 200, Colours: true}, list...)
	for _, want := range []string{
		"\x1b[1mKEY\x1b[0m ", "\x1b[32msuccessful\x1b[0m  g", "\x1b[33munknown\x1b[0m     g",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	evil := []string{"\x1b[31mred", "\u202ex", "https://a.example/?s3cret", "y"}
	for _, terminal := range []output.Terminal{{}, {Columns: 20}, {Columns: 200, Colours: true}} {
		got := write(t, terminal, list[0], evil)
		if strings.Contains(strings.ReplaceAll(got, "\x1b[1m", ""), "\x1b[3") || strings.Contains(got, "\u202e") ||
			strings.Contains(got, "s3cret") {
			t.Errorf("%+v: %q", terminal, got)
		}
	}
	if plain := write(t, output.Terminal{Columns: 200}, list...); strings.Contains(plain, "\x1b") {
		t.Errorf("without colours: %q", plain)
	}
}
