package main

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// orphanCheckInterval is how often the run looks for who could stop it.
const orphanCheckInterval = time.Second

// parentPIDVariable is the variable in which make gives its process number. The number of our parent would not do: make may have
// been killed while it still built this program.
const parentPIDVariable = "PARENT_PID"

// cancelWhenOrphaned gives a context that ends also when nobody is left to stop the run: when make, which started it, was
// killed, or when its terminal is gone. make keeps a terminal's hangup to itself, so the signal alone does not do.
// A run that was told to outlive its terminal (nohup) does.
func cancelWhenOrphaned(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	makePID, err := strconv.Atoi(os.Getenv(parentPIDVariable))
	startedByMake := err == nil
	atTerminal := hasTerminal() && !signal.Ignored(syscall.SIGHUP)
	if !startedByMake && !atTerminal {
		return ctx, cancel
	}
	go func() {
		ticker := time.NewTicker(orphanCheckInterval)
		defer ticker.Stop()
		for {
			if startedByMake && os.Getppid() != makePID || atTerminal && !hasTerminal() {
				cancel()
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

// hasTerminal tells whether the process has a controlling terminal.
func hasTerminal() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	return terminal.Close() == nil
}
