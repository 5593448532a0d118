package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// commandTimeout bounds one command of the DevTools protocol.
const commandTimeout = 20 * time.Second

// browser is a running browser. Commands go through one pipe; responses and events come through another. Each is a
// JSON text and a zero byte (--remote-debugging-pipe).
type browser struct {
	commands *os.File

	mu            sync.Mutex
	last          int
	waiting       map[int]chan message
	consoleErrors map[string][]string // by session
	closed        error
}

// message is a command, a response or an event of the protocol.
type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// browserToolsDir returns the folder of the installed browser.
func browserToolsDir(t *testing.T) string {
	folder, err := filepath.Abs("../../.local/tools/browser")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// launchBrowser starts a browser with its own profile. The browser ends with the test.
func launchBrowser(t *testing.T) *browser {
	t.Helper()
	folder := browserToolsDir(t)
	program := os.Getenv("E2E_CHROMIUM")
	home := t.TempDir() // for the profile and the caches of the browser and its libraries
	environment := append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "XDG_CONFIG_HOME="+home)
	if program == "" {
		program = filepath.Join(folder, "chromium")
		environment = append(environment, "LD_LIBRARY_PATH="+filepath.Join(folder, "lib"),
			"FONTCONFIG_FILE="+filepath.Join(folder, "fonts.conf"))
	}
	command := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--hide-scrollbars",
		"--force-color-profile=srgb", "--font-render-hinting=none", "--remote-debugging-pipe",
		"--user-data-dir="+filepath.Join(home, "profile"), "about:blank")
	command.Env = environment
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ownEnds, browserEnds := newPipes(t)
	command.ExtraFiles = browserEnds[:]
	if err := command.Start(); err != nil {
		t.Fatalf("the browser does not start (e2e/browser/install installs it): %v", err)
	}
	for _, file := range browserEnds {
		_ = file.Close()
	}
	c := &browser{commands: ownEnds[1], waiting: map[int]chan message{}, consoleErrors: map[string][]string{}}
	go c.read(ownEnds[0])
	t.Cleanup(func() {
		_, _ = c.call("", "Browser.close", nil)
		done := make(chan struct{})
		go func() { _ = command.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Error("the browser did not end after Browser.close")
		}
		// ends remaining helpers, which are in the browser's group
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-done
		_, _ = ownEnds[0].Close(), ownEnds[1].Close()
	})
	return c
}

// newPipes returns the ends of two pipes: the test's to read and to write, the browser's to read and to write.
func newPipes(t *testing.T) (ownEnds, browserEnds [2]*os.File) {
	t.Helper()
	var errs [2]error
	browserEnds[0], ownEnds[1], errs[0] = os.Pipe()
	ownEnds[0], browserEnds[1], errs[1] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return ownEnds, browserEnds
}

// read passes responses to their callers and records the console errors of the pages.
func (c *browser) read(up *os.File) {
	lines := bufio.NewReader(up)
	for {
		text, err := lines.ReadBytes(0)
		if err != nil {
			c.mu.Lock()
			c.closed = fmt.Errorf("the browser has ended: %w", err)
			for id, waiting := range c.waiting {
				close(waiting)
				delete(c.waiting, id)
			}
			c.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		c.mu.Lock()
		if m.ID == 0 {
			if m.Method == "Log.entryAdded" || m.Method == "Runtime.exceptionThrown" {
				c.consoleErrors[m.SessionID] = append(c.consoleErrors[m.SessionID], string(m.Params))
			}
		} else if waiting := c.waiting[m.ID]; waiting != nil {
			waiting <- m
			delete(c.waiting, m.ID)
		}
		c.mu.Unlock()
	}
}

// call sends one command and waits for its result.
func (c *browser) call(session, method string, params any) (json.RawMessage, error) {
	if params == nil {
		params = struct{}{}
	}
	body, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	response := make(chan message, 1)
	c.mu.Lock()
	if c.closed != nil {
		c.mu.Unlock()
		return nil, c.closed
	}
	c.last++
	m := message{ID: c.last, SessionID: session, Method: method, Params: body}
	c.waiting[m.ID] = response
	text, err := json.Marshal(m)
	if err == nil {
		_, err = c.commands.Write(append(text, 0))
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m, open := <-response:
		if !open {
			return nil, c.closed
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-time.After(commandTimeout):
		return nil, fmt.Errorf("%s: no response", method)
	}
}

// takeConsoleErrors returns the console errors of a session since the last call.
func (c *browser) takeConsoleErrors(session string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := slices.Clone(c.consoleErrors[session])
	delete(c.consoleErrors, session)
	return seen
}
