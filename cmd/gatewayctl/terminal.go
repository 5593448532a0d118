package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"mobilegateway/gatewayctl/deployment"
)

// terminal prompts at a terminal. Prompts go to out, so that the standard output stays the command's result.
type terminal struct {
	ctx  context.Context
	file *os.File
	out  io.Writer
}

// openTerminal returns the terminal of a file, nil if the file is none. A question ends with the context.
func openTerminal(ctx context.Context, file *os.File, out io.Writer) deployment.Terminal {
	if !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return terminal{ctx, file, out}
}

// Prompt implements deployment.Terminal.
func (t terminal) Prompt(question string) (string, error) {
	return t.read(question, func() (string, error) { return readLine(t.file) })
}

// PromptSecret implements deployment.Terminal. The terminal shows nothing of the line. It gets its echo back also
// after an interrupt.
func (t terminal) PromptSecret(question string) (string, error) {
	terminal := int(t.file.Fd()) // read once: after an interrupt the file may be closed, while the line is still read
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	defer func() {
		_ = term.Restore(terminal, before) // the terminal is gone if this fails
		fmt.Fprintln(t.out)
	}()
	return t.read(question, func() (string, error) {
		line, err := term.ReadPassword(terminal)
		return string(line), err
	})
}

// read prompts, and waits for the line or for the end of the context.
func (t terminal) read(question string, line func() (string, error)) (string, error) {
	if err := t.ctx.Err(); err != nil {
		return "", err
	}
	fmt.Fprint(t.out, question)
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := line()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-t.ctx.Done():
		return "", t.ctx.Err()
	}
}

// columns returns the width of a terminal in characters, 0 for a file that is none. A user may change it at any time.
func columns(file *os.File) int {
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// readLine reads byte by byte: a buffer would hold lines back from the next question without echo.
func readLine(from io.Reader) (string, error) {
	var line strings.Builder
	for one := make([]byte, 1); ; {
		n, err := from.Read(one)
		if n == 1 && one[0] == '\n' || errors.Is(err, io.EOF) && line.Len() > 0 {
			return strings.TrimSuffix(line.String(), "\r"), nil
		}
		if err != nil {
			return "", err
		}
		line.Write(one[:n])
	}
}
