package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobilegateway/local"
)

// waitTimeout bounds a start, including a build with cold caches, and an end.
const waitTimeout = 5 * time.Minute

// startMake runs make run in a temporary folder and returns once run.json is complete.
func startMake(t *testing.T) (*exec.Cmd, <-chan struct{}, string, local.PIDs) {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make here")
	}
	dir := filepath.Join(t.TempDir(), "local")
	command := exec.CommandContext(t.Context(), "make", "run")
	command.Dir = "../.."
	command.Env = append(os.Environ(), "PORT=0", "LOCAL_DIR="+dir)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // its output shows how it ended
		close(ended)
	}()
	var info local.Info
	eventually(t, "run.json", func() bool {
		select {
		case <-ended:
			t.Fatal("make run ended at its start")
		default:
		}
		text, err := os.ReadFile(filepath.Join(dir, "run.json"))
		return err == nil && json.Unmarshal(text, &info) == nil && len(info.PIDs.Functions["sweep"]) > 0
	})
	return command, ended, dir, info.PIDs
}

func eventually(t *testing.T, description string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", waitTimeout, description)
		}
	}
}

// hasEnded reports whether a process has ended. A zombie counts.
func hasEnded(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err != nil || strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

func TestExitStopsAllProcesses(t *testing.T) {
	ends := map[string]struct {
		toRun  bool // the signal goes to the run, else to make
		signal syscall.Signal
	}{
		"make is interrupted": {true, syscall.SIGINT}, // the terminal signals both
		"make is terminated":  {false, syscall.SIGTERM},
		"make is killed":      {false, syscall.SIGKILL},
		"the run is killed":   {true, syscall.SIGKILL},
	}
	for name, c := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, ended, dir, pids := startMake(t)
			target := command.Process.Pid
			if c.toRun {
				target = pids.Run
			}
			if err := syscall.Kill(target, c.signal); err != nil {
				t.Fatal(err)
			}
			<-ended
			for _, pid := range []int{pids.Run, pids.DynamoDB, pids.Functions["sweep"][0]} {
				if pid != 0 {
					eventually(t, "the end of a process", func() bool { return hasEnded(pid) })
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil && name != "the run is killed" {
				t.Error("run.json exists after the end of the run")
			}
		})
	}
}

// TestRunEndsWithParent: if make is killed while it builds, the run does not start.
func TestRunEndsWithParent(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gateway-local")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	dir := filepath.Join(t.TempDir(), "local")
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Dir = "../.."
	parent := parentPIDVariable + "=" + strconv.Itoa(ended.ProcessState.Pid())
	command.Env = append(os.Environ(), "PORT=0", "LOCAL_DIR="+dir, parent)
	if output, err := command.CombinedOutput(); err != nil || strings.Contains(string(output), "curl") {
		t.Errorf("the run started without its parent: %v\n%s", err, output)
	}
}
