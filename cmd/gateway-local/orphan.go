package main

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// orphanCheck is how often the run looks for who could stop it.
const orphanCheck = time.Second

// startedBy is the variable in which make gives its process number. The number of our parent would not do: make may have
// been killed while it still built this program.
const startedBy = "STARTED_BY"

// untilOrphaned gives a context that ends also when nobody is left to stop the run: when make, which started it, was
// killed, or when its terminal is gone. make keeps a terminal's hangup to itself, so the signal alone does not do.
// A run that was told to outlive its terminal (nohup) does.
func untilOrphaned(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	maker, err := strconv.Atoi(os.Getenv(startedBy))
	byMake := err == nil
	atTerminal := hasTerminal() && !signal.Ignored(syscall.SIGHUP)
	if !byMake && !atTerminal {
		return ctx, cancel
	}
	go func() {
		ticker := time.NewTicker(orphanCheck)
		defer ticker.Stop()
		for {
			if byMake && os.Getppid() != maker || atTerminal && !hasTerminal() {
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
