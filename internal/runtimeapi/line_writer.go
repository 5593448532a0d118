package runtimeapi

import "bytes"

// maxLine is the longest line passed on whole, in bytes; Lambda cuts at the same 256 KiB.
const maxLine = 256 << 10

// lineWriter passes on what a process writes line by line, each with its newline in one Write.
type lineWriter struct {
	out     *lockedWriter
	pending []byte
}

// Write keeps an unfinished line until its rest comes.
func (w *lineWriter) Write(data []byte) (int, error) {
	w.pending = append(w.pending, data...)
	for {
		end := bytes.IndexByte(w.pending, '\n')
		if end < 0 {
			break
		}
		_, _ = w.out.Write(w.pending[:end+1]) // a log that cannot be written must not stop the function
		w.pending = w.pending[end+1:]
	}
	if len(w.pending) > maxLine {
		w.flush()
	}
	return len(data), nil
}

// flush passes on a line that has no newline.
func (w *lineWriter) flush() {
	if len(w.pending) == 0 {
		return
	}
	_, _ = w.out.Write(append(w.pending, '\n'))
	w.pending = nil
}
