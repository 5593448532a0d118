// Command cost writes the table of docs/deploy.md: the price of a million of each operation, by package bill. Run
// `go run ./deploy/cost` after `make bench`; a test compares the page.
package main

import (
	"fmt"
	"os"
	"strings"

	"mobilegateway/deploy/bill"
)

// The page and the markers of its table.
const (
	pagePath   = "docs/deploy.md"
	tableBegin = "<!-- cost: begin -->"
	tableEnd   = "<!-- cost: end -->"
)

func formatTable(all []bill.Operation) string {
	var b strings.Builder
	b.WriteString("| A million of | API Gateway | Lambda | DynamoDB | Logs | Transfer, KMS | US dollars |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, o := range all {
		p := o.Price(bill.OperatorMS)
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | **%.1f** |\n", o.Name, p.API, p.Lambda, p.Database,
			p.Logs, p.Rest, p.Total())
	}
	return b.String()
}

func fillTable(text, counts string) (string, error) {
	all, err := bill.Parse(counts)
	if err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(text, tableBegin)
	_, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		return "", fmt.Errorf("%s lacks the markers of the table", pagePath)
	}
	return before + tableBegin + "\n\n" + formatTable(all) + "\n" + tableEnd + after, nil
}

func main() {
	if err := updatePage(); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func updatePage() error {
	text, err := os.ReadFile(pagePath)
	if err != nil {
		return err
	}
	counts, err := os.ReadFile(bill.CountsPath)
	if err != nil {
		return err
	}
	now, err := fillTable(string(text), string(counts))
	if err != nil {
		return err
	}
	return os.WriteFile(pagePath, []byte(now), 0o600)
}
