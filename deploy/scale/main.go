// Command scale writes the tables of docs/scale.md. Run `go run ./deploy/scale`; a test compares the page.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mobilegateway/deploy/bill"
	"mobilegateway/internal/repository"
)

// pagePath is the page with the tables.
const pagePath = "docs/scale.md"

func main() {
	if err := updatePage(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func updatePage() error {
	root, err := repository.Root()
	if err != nil {
		return err
	}
	page := filepath.Join(root, filepath.FromSlash(pagePath))
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	now, err := fillPage(root, string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(now), 0o600)
}

// fillPage replaces the tables of the page by today's. root is the folder of the checkout.
func fillPage(root, text string) (string, error) {
	all, err := loadAccounts(root)
	if err != nil {
		return "", err
	}
	operations, err := bill.Load(root)
	if err != nil {
		return "", err
	}
	capacity, err := parseCapacity(text)
	if err != nil {
		return "", err
	}
	m, err := newModel(root, capacity)
	if err != nil {
		return "", err
	}
	sections := map[string]string{
		"concurrency": concurrencyTable(all), "use": m.useSection(operations),
		"limits": m.limitSection(operations, all), "hang": m.hangTable(all),
	}
	for name, section := range sections {
		if text, err = fillSection(text, name, section); err != nil {
			return "", err
		}
	}
	return text, nil
}

// The traffic of the tables. An operator's call takes the typical time of package bill, or hangs until
// OPERATOR_TIMEOUT.
const (
	largestMerchant = 0.8
	hangMS          = 12_000
)

// modelled are the operations of the tables.
var modelled = [...]string{bill.Charge, bill.Payment, bill.SMS}

// useSection has what each operation uses at three rates, with quick operators and while all of them hang.
func (m model) useSection(operations []bill.Operation) string {
	var all []use
	for _, operatorMS := range []float64{bill.OperatorMS, hangMS} {
		for _, name := range modelled {
			for _, rate := range []float64{10, 1_000, 10_000} {
				all = append(all, m.use(bill.Find(operations, name), traffic{rate, largestMerchant, operatorMS}))
			}
		}
	}
	return useTable(all)
}

// limitSection has what is full first in the account of prod, for payments and charges.
func (m model) limitSection(operations []bill.Operation, accounts []account) string {
	var b strings.Builder
	for _, name := range modelled {
		fmt.Fprintf(&b, "**%s**, in an account of %s:\n\n", shortName(name), thousands(float64(m.account)))
		for _, a := range accounts {
			if a.concurrency == m.account {
				t := traffic{1, largestMerchant, bill.OperatorMS}
				b.WriteString(limitTable(m.limits(bill.Find(operations, name), a, t)) + "\n")
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// fillSection replaces what is between the two marks of a section.
func fillSection(text, name, section string) (string, error) {
	begin, end := "<!-- "+name+": begin -->", "<!-- "+name+": end -->"
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("%s lacks the marks of the section %s", pagePath, name)
	}
	return before + begin + "\n\n" + section + "\n" + end + after, nil
}
