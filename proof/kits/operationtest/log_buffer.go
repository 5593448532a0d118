package operationtest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

// LogBuffer collects the log lines of parallel requests and passes. It is safe for concurrent use.
type LogBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

// String returns all lines.
func (l *LogBuffer) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// SumMetric returns the sum of a metric over all lines.
func (l *LogBuffer) SumMetric(metric string) int {
	total := 0
	for _, line := range l.decoded() {
		value, _ := line[metric].(float64)
		total += int(value)
	}
	return total
}

// MaxMetric returns the largest value of a metric, -1 if no line has it.
func (l *LogBuffer) MaxMetric(metric string) int {
	largest := -1
	for _, line := range l.decoded() {
		if value, found := line[metric].(float64); found {
			largest = max(largest, int(value))
		}
	}
	return largest
}

// LineCount returns the number of lines.
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
