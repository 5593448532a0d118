package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// The rows of the capacity table that the model reads.
const (
	sweepWork = "delivery"
	relayWork = "relay: notification"
)

// sweepMargin is the end of a sweep's time in which it begins no work, in seconds (functions/sweep: startMargin).
const sweepMargin = 20

// capacityRow is a row of the capacity table: the processor time of one entry, and the memory of its function.
type capacityRow struct{ cpuMS, memoryMB float64 }

// parseCapacity reads the rows of the capacity table of the page, by the names of their work.
func parseCapacity(page string) (map[string]capacityRow, error) {
	_, section, found := strings.Cut(page, "<!-- capacity: begin -->")
	section, _, closed := strings.Cut(section, "<!-- capacity: end -->")
	if !found || !closed {
		return nil, fmt.Errorf("%s lacks the marks of the section capacity", pagePath)
	}
	var head []string
	rows := map[string]capacityRow{}
	for line := range strings.Lines(section) {
		cells := tableCells(line)
		if head == nil {
			head = cells
			continue
		}
		var row capacityRow
		for i, cell := range cells[:min(len(cells), len(head))] {
			number, _ := strconv.ParseFloat(cell, 64) // other cells are not read
			switch head[i] {
			case "CPU, ms":
				row.cpuMS = number
			case "Memory, MB":
				row.memoryMB = number
			}
		}
		if row.cpuMS > 0 && row.memoryMB > 0 {
			rows[cells[0]] = row
		}
	}
	return rows, nil
}

// tableCells returns the cells of a row of a Markdown table, nil for another line.
func tableCells(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// productionParameter reads a number that samconfig.toml gives prod.
func productionParameter(root, name string) (float64, error) {
	var file struct {
		Prod struct {
			Deploy struct {
				Parameters struct {
					Overrides string `toml:"parameter_overrides"`
				} `toml:"parameters"`
			} `toml:"deploy"`
		} `toml:"prod"`
	}
	path := filepath.Join(root, "samconfig.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	if err := toml.Unmarshal(text, &file); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	for item := range strings.FieldsSeq(file.Prod.Deploy.Parameters.Overrides) {
		if value, found := strings.CutPrefix(item, name+"="); found {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("%s gives prod no %s", path, name)
}
