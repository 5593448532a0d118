// Command generate writes deploy/alarms.yaml, the alarms of template.yaml and the generated parts of
// docs/operations.md.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mobilegateway/deploy/alarms"
)

func main() {
	root := filepath.Join("..", "..") // go generate runs in the package's folder
	page := filepath.Join(root, "docs", "operations.md")
	err := errors.Join(
		os.WriteFile(filepath.Join(root, "deploy", "alarms.yaml"), []byte(alarms.Template()), 0o644),
		replace(filepath.Join(root, "template.yaml"), alarms.GatewayStart, alarms.GatewayEnd, alarms.GatewayAlarms()),
		replace(page, alarms.PageStart, alarms.PageEnd, alarms.Page()),
	)
	for runbook, text := range alarms.Beginnings() {
		start, end := alarms.BeginningMarks(runbook)
		err = errors.Join(err, replace(page, start, end, text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// replace replaces the text of a file between two texts.
func replace(name, start, end, text string) error {
	whole, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(whole), start)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		return fmt.Errorf("%s lacks %q or %q", name, start, end)
	}
	return os.WriteFile(name, []byte(before+start+text+end+after), 0o644)
}
