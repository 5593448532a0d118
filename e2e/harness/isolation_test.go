//go:build linux

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test starts itself as the isolated program, with these variables.
const (
	nameVariable    = "E2E_HARNESS_TEST"    // the program's name
	outcomeVariable = "E2E_HARNESS_OUTCOME" // how its work ends
)

func TestMain(m *testing.M) {
	if name := os.Getenv(nameVariable); name != "" {
		os.Exit(leakyProgram(name).Main())
	}
	os.Exit(m.Run())
}

// leakyProgram returns a program that tries to leave things behind: processes outside its group, mounts, an open port
// and a file outside its namespaces.
func leakyProgram(name string) Isolation {
	return Isolation{
		Name:            name,
		NeedsOwnNetwork: func(context.Context, string) bool { return true },
		RunIsolated: func(ctx context.Context, site Workspace) error {
			if err := os.WriteFile(outsideFile(site), nil, 0o600); err != nil {
				return err
			}
			script := "setsid sleep 1000." + name[len("life-"):] + " & exec sleep 1000"
			if _, err := Start(filepath.Join(site.Dir, "sleep.log"), os.Environ(), "sh", "-c", script); err != nil {
				return err
			}
			if err := syscall.Mount(name, filepath.Join(site.Dir, "tmp"), "tmpfs", 0, ""); err != nil {
				return err
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(site.Dir, "ready"), []byte(listener.Addr().String()),
				0o600); err != nil {
				return err
			}
			switch os.Getenv(outcomeVariable) {
			case "ends":
				return nil
			case "fails":
				return errors.New("a planned failure")
			}
			select {}
		},
		Cleanup: func(site Workspace) error {
			err := os.Remove(outsideFile(site))
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		},
	}
}

// outsideFile is a file that only the sweeper removes.
func outsideFile(site Workspace) string { return site.Dir + ".outside" }

// TestIsolation checks that the program leaves nothing behind, however it ends.
func TestIsolation(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this test needs root and must run in CI")
		}
		t.Skip("needs root")
	}
	signal := func(s syscall.Signal) func(*exec.Cmd) error {
		return func(c *exec.Cmd) error { return syscall.Kill(c.Process.Pid, s) }
	}
	group := func(s syscall.Signal) func(*exec.Cmd) error {
		return func(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, s) }
	}
	ways := []struct {
		name string
		work string
		end  func(*exec.Cmd) error
		left int // number of files outside the namespaces that the next run must remove
	}{
		{name: "the work is done", work: "ends"},
		{name: "the work fails", work: "fails"},
		{name: "an interrupt to the group", end: group(syscall.SIGINT)},
		{name: "SIGTERM to the group", end: group(syscall.SIGTERM)},
		{name: "an interrupt to the leader", end: signal(syscall.SIGINT)},
		{name: "SIGTERM to the leader", end: signal(syscall.SIGTERM)},
		{name: "the terminal is closed", end: group(syscall.SIGHUP)},
		{name: "the leader is killed", end: signal(syscall.SIGKILL)},
		{name: "the group is killed", end: group(syscall.SIGKILL)},
		{name: "the sweeper is killed too", end: killLeaderAndSweeper, left: 1},
	}
	for number, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("life-%d%02d", os.Getpid(), number)
			site := startThenEnd(t, name, way.work, way.end)
			checkNothingLeft(t, name, site, way.left)
			if way.left > 0 { // the next run removes the files of both
				startThenEnd(t, name, "ends", nil)
				checkNothingLeft(t, name, site, 0)
			}
		})
	}
}

// startThenEnd starts the program and ends it when its work has begun.
func startThenEnd(t *testing.T, name, work string, end func(*exec.Cmd) error) Workspace {
	t.Helper()
	site, err := Isolation{Name: name}.workspace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, path := range []string{site.Dir, site.Dir + ".lock", outsideFile(site)} {
			_ = os.RemoveAll(path)
		}
	})
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), nameVariable+"="+name, outcomeVariable+"="+work)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.WaitDelay = 10 * time.Second
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if end != nil {
		eventually(t, func() error { _, err := os.Stat(filepath.Join(site.Dir, "ready")); return err })
		if err := end(command); err != nil {
			t.Fatal(err)
		}
	}
	err = command.Wait()
	if (err == nil) != (work == "ends") {
		t.Errorf("the program ended with %v: %s", err, output.String())
	}
	return site
}

// checkNothingLeft checks processes, mounts and files.
func checkNothingLeft(t *testing.T, name string, site Workspace, left int) {
	t.Helper()
	eventually(t, func() error {
		if found := processesOf(name); len(found) > 0 {
			return fmt.Errorf("processes are still running: %q", found)
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil || strings.Contains(string(mounts), name) {
			return errors.Join(err, errors.New("a mount is left"))
		}
		found, err := filepath.Glob(outsideFile(site))
		if err != nil || len(found) != left {
			return errors.Join(err, fmt.Errorf("files outside the namespaces: %q, want %d", found, left))
		}
		return nil
	})
}

// processesOf returns the command lines of a program's processes, found by its name or number.
func processesOf(name string) (found []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, path := range paths {
		text, err := os.ReadFile(path)
		line := strings.ReplaceAll(string(text), "\x00", " ")
		if err == nil && (strings.Contains(line, name) || strings.Contains(line, "1000."+name[len("life-"):])) {
			found = append(found, line)
		}
	}
	return found
}

// killLeaderAndSweeper kills the leader's group and its sweeper, which is not in that group.
func killLeaderAndSweeper(command *exec.Cmd) error {
	found, err := childrenOf(command.Process.Pid)
	// a thread has just ended, and another one has its children
	for errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		found, err = childrenOf(command.Process.Pid)
	}
	if err != nil {
		return err
	}
	for _, pid := range found {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	return syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
}

// childrenOf returns the children of all threads of a process.
func childrenOf(process int) (found []int, err error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", process))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for child := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return nil, err
			}
			found = append(found, pid)
		}
	}
	return found, nil
}

// eventually repeats a check until it succeeds.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	if err := Poll(t.Context(), 20*time.Second, check); err != nil {
		t.Fatal(err)
	}
}
