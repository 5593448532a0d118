package deliverytest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
)

// callCounter counts. It is safe for parallel use.
type callCounter struct{ count atomic.Int64 }

func (c *callCounter) increment() int64 { return c.count.Add(1) }

// Calls is how often it counted.
func (c *callCounter) Calls() int { return int(c.count.Load()) }

// LogBuffer collects what is logged. It is safe for parallel use.
type LogBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write is io.Writer's.
func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

// String is everything that was logged.
func (l *LogBuffer) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// SumMetric adds a metric up over all lines.
func (l *LogBuffer) SumMetric(metric string) int {
	total := 0
	for _, line := range l.decoded() {
		value, _ := line[metric].(float64)
		total += int(value)
	}
	return total
}

// MaxMetric is the largest value of a metric, -1 where no line has it.
func (l *LogBuffer) MaxMetric(metric string) int {
	largest := -1
	for _, line := range l.decoded() {
		if value, found := line[metric].(float64); found {
			largest = max(largest, int(value))
		}
	}
	return largest
}

// LineCount is the number of lines.
func (l *LogBuffer) LineCount() int { return len(l.decoded()) }

func (l *LogBuffer) decoded() []map[string]any {
	var lines []map[string]any
	for text := range strings.Lines(l.String()) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}
