package local

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"mobilegateway/internal/local/apigateway"
)

// console writes lines for the person at the terminal. It never shows a token, a number or a body.
type console struct {
	mu  sync.Mutex
	out io.Writer
}

func (c *console) printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, time.Now().Format("15:04:05.000")+" "+format+"\n", args...)
}

func (c *console) logRequest(l apigateway.AccessLogEntry) {
	if l.Resource == "" {
		c.printf("unknown route %d", l.Status)
		return
	}
	c.printf("%s %s %d %s", l.Method, l.Resource, l.Status, l.Duration.Round(100*time.Microsecond))
}

// functionLog writes a function's output to a file. It also shows each line on the console that is not JSON: a failed
// start, or the trace of a crash.
type functionLog struct {
	name    string
	file    io.Writer
	console *console
}

// Write implements io.Writer for one line.
func (l *functionLog) Write(line []byte) (int, error) {
	if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '{' {
		l.console.printf("%s: %s", l.name, text)
	}
	return l.file.Write(line)
}
