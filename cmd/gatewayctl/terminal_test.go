//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openPseudoTerminal returns both ends: what the person types and sees, and what the program reads.
func openPseudoTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// TestSecretHasNoEcho types at a real terminal: the program reads both lines, and only the first one is on the screen.
func TestSecretHasNoEcho(t *testing.T) {
	person, program := openPseudoTerminal(t)
	var questions bytes.Buffer
	terminal := openTerminal(t.Context(), program, &questions)
	if terminal == nil {
		t.Fatal("a terminal is not recognized")
	}
	typed := make(chan error, 1)
	for _, c := range []struct {
		ask   func(string) (string, error)
		value string
	}{
		{terminal.Prompt, "https://op.example"}, {terminal.PromptSecret, "a-secret-token"},
		{terminal.Prompt, "echo-again"},
	} {
		ask := c.ask
		if c.value == "a-secret-token" { // type it when the echo is off, as a person does
			ask = func(question string) (string, error) {
				go func() { typed <- typeWithoutEcho(person, program, c.value) }()
				return c.ask(question)
			}
		} else if _, err := person.WriteString(c.value + "\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := ask("? "); got != c.value || err != nil {
			t.Fatalf("read %q, %v, want %q", got, err, c.value)
		}
	}
	if err := <-typed; err != nil {
		t.Fatal(err)
	}
	screen := make([]byte, 1000)
	n, err := person.Read(screen)
	if err != nil || !strings.Contains(string(screen[:n]), "op.example") || strings.Contains(string(screen[:n]),
		"secret") {
		t.Errorf("the terminal shows %q, %v", screen[:n], err)
	}
	if strings.Count(questions.String(), "? ") != 3 {
		t.Errorf("asked %q", questions.String())
	}
}

// typeWithoutEcho types a line as soon as the terminal has no echo.
func typeWithoutEcho(person io.Writer, terminal *os.File, line string) error {
	err := awaitNoEcho(terminal)
	if err == nil {
		_, err = io.WriteString(person, line+"\n")
	}
	return err
}

func awaitNoEcho(terminal *os.File) error {
	for {
		state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil || state.Lflag&unix.ECHO == 0 {
			return err
		}
		runtime.Gosched()
	}
}

// TestQuestionEndsWithTheContext: an interrupt ends a question without echo, and the terminal has its echo again. It is
// the last test at a terminal, because the read that it abandons would take the input of another one.
func TestQuestionEndsWithTheContext(t *testing.T) {
	_, program := openPseudoTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = awaitNoEcho(program) // then the question does not end, and the test times out
		cancel()
	}()
	terminal := openTerminal(ctx, program, io.Discard)
	if line, err := terminal.PromptSecret("? "); err == nil {
		t.Errorf("read %q", line)
	}
	state, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil || state.Lflag&unix.ECHO == 0 {
		t.Errorf("the terminal has no echo, %v", err)
	}
	if line, err := terminal.Prompt("? "); err == nil {
		t.Errorf("read %q after the interrupt", line)
	}
}

// TestFileIsNoTerminal: a file never gets a prompt.
func TestFileIsNoTerminal(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if openTerminal(t.Context(), file, io.Discard) != nil {
		t.Error("a file is a terminal")
	}
	if line, err := readLine(strings.NewReader("a\r\nb")); line != "a" || err != nil {
		t.Errorf("read %q, %v", line, err)
	}
}
