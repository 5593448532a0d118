package main

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"mobilegateway/shared/pause"
)

// orphanCheckInterval is how often the run checks its parent and terminal.
const orphanCheckInterval = time.Second

// parentPIDVariable is the variable with make's process id. Getppid at the start does not do: make may have been killed
// while it built this program.
const parentPIDVariable = "PARENT_PID"

// cancelWhenOrphaned returns a context that also ends when no parent can stop the run: make was killed, or the terminal
// is gone. The signal is not enough, because make does not pass a terminal's hangup on. A run under nohup
// outlives its terminal.
func cancelWhenOrphaned(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	makePID, err := strconv.Atoi(os.Getenv(parentPIDVariable))
	startedByMake := err == nil
	atTerminal := hasTerminal() && !signal.Ignored(syscall.SIGHUP)
	if !startedByMake && !atTerminal {
		return ctx, cancel
	}
	go func() {
		for !(startedByMake && os.Getppid() != makePID || atTerminal && !hasTerminal()) {
			if pause.For(ctx, orphanCheckInterval) != nil {
				return
			}
		}
		cancel()
	}()
	return ctx, cancel
}

func hasTerminal() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	return terminal.Close() == nil
}
