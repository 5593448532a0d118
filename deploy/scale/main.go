// Command scale writes the tables of docs/scale.md. Run `go run ./deploy/scale`; a test compares the page.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	return fillSection(text, "concurrency", concurrencyTable(all))
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
