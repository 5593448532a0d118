package main

import (
	"os"
	"path/filepath"
	"testing"

	"mobilegateway/deploy/bill"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageIsCurrent checks that the page has the table of today's counts and prices.
func TestPageIsCurrent(t *testing.T) {
	text := read(t, pagePath)
	now, err := fillTable(text, read(t, bill.CountsPath))
	if err != nil {
		t.Fatal(err)
	}
	if now != text {
		t.Errorf("%s is out of date: run go run ./deploy/cost", pagePath)
	}
}
