package local

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"mobilegateway/internal/local/apigateway"
)

// console is what the person at the terminal sees. It never holds a token, a number or a body.
type console struct {
	now func() time.Time

	mu  sync.Mutex
	out io.Writer
}

// printf writes one line with the time.
func (c *console) printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, c.now().Format("15:04:05.000")+" "+format+"\n", args...)
}

// logRequest writes the line of one request.
func (c *console) logRequest(l apigateway.AccessLogEntry) {
	if l.Resource == "" {
		c.printf("unknown route %d", l.Status)
		return
	}
	c.printf("%s %s %d %s", l.Method, l.Resource, l.Status, l.Duration.Round(100*time.Microsecond))
}

// functionLog keeps what a function writes in a file, and shows what is no JSON document: why it does not start, or the
// trace of a crash.
type functionLog struct {
	name    string
	file    io.Writer
	console *console
}

// Write takes one line.
func (l *functionLog) Write(line []byte) (int, error) {
	if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '{' {
		l.console.printf("%s: %s", l.name, text)
	}
	return l.file.Write(line)
}
