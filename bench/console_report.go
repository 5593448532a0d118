package main

import (
	"fmt"
	"strings"
	"time"

	"mobilegateway/bench/page"
)

// consoleMarks are the marks of the table in docs/console.md.
func consoleMarks() page.Marks { return page.NewMarks("page costs") }

func consoleTable(costs []pageCost, transactions int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured with %s: %d transactions of today, the median of %d loads.\n"+
		"Each call of DynamoDB waits %s before it is handled.\n"+
		"The first load has the commands that later run in the background.\n\n",
		page.Machine(), transactions, pageLoads, typicalDelays().table)
	b.WriteString("| Page or command | Calls of DynamoDB | ms | First load: s | its calls |\n|---|---|---|---|---|\n")
	for _, c := range costs {
		first := " | "
		if c.background > 0 {
			first = fmt.Sprintf("%.1f | %d", c.background.Seconds(), c.reads)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", c.name, c.calls, c.time.Milliseconds(), first)
	}
	return b.String()
}

// checkConsole returns an error that names each page that costs too much.
func checkConsole(costs []pageCost) error {
	var over []string
	for _, c := range costs {
		if c.calls > maxPageCalls || c.time > maxPageTime {
			over = append(over, fmt.Sprintf("%s (%d calls, %s)", c.name, c.calls, c.time.Round(time.Millisecond)))
		}
	}
	if over == nil {
		return nil
	}
	return fmt.Errorf("more than %d calls or %s: %s", maxPageCalls, maxPageTime, strings.Join(over, ", "))
}
