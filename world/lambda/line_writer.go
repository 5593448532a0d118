package lambda

import (
	"bytes"
	"log"
)

// maxLine is the maximum length of a line; longer ones are split, as by Lambda.
const maxLine = 256 << 10

// lineWriter passes the output of a process on, one line with its newline per Write.
type lineWriter struct {
	out     *log.Logger // serializes the lines of several processes; a failing log does not stop the function
	pending []byte
}

// Write implements io.Writer. It keeps an incomplete line for the next Write.
func (w *lineWriter) Write(data []byte) (int, error) {
	w.pending = append(w.pending, data...)
	for {
		end := bytes.IndexByte(w.pending, '\n')
		if end < 0 {
			break
		}
		w.out.Print(string(w.pending[:end+1]))
		w.pending = w.pending[end+1:]
	}
	if len(w.pending) > maxLine {
		w.flush()
	}
	return len(data), nil
}

// flush passes an incomplete line on.
func (w *lineWriter) flush() {
	if len(w.pending) == 0 {
		return
	}
	w.out.Print(string(w.pending))
	w.pending = nil
}
