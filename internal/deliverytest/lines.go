package deliverytest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
)

// counter counts. It is safe for parallel use.
type counter struct{ count atomic.Int64 }

func (c *counter) next() int64 { return c.count.Add(1) }

// Calls is how often it counted.
func (c *counter) Calls() int { return int(c.count.Load()) }

// Lines collects what is logged. It is safe for parallel use.
type Lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write is io.Writer's.
func (l *Lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

// String is everything that was logged.
func (l *Lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// Sum adds a metric up over all lines.
func (l *Lines) Sum(metric string) int {
	total := 0
	for _, line := range l.all() {
		value, _ := line[metric].(float64)
		total += int(value)
	}
	return total
}

// Max is the largest value of a metric, -1 where no line has it.
func (l *Lines) Max(metric string) int {
	largest := -1
	for _, line := range l.all() {
		if value, found := line[metric].(float64); found {
			largest = max(largest, int(value))
		}
	}
	return largest
}

// Count is the number of lines.
func (l *Lines) Count() int { return len(l.all()) }

func (l *Lines) all() []map[string]any {
	var lines []map[string]any
	for text := range strings.Lines(l.String()) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}
