package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// orphanCheck is how often the run looks for who could stop it.
const orphanCheck = time.Second

// untilOrphaned gives a context that ends also when nobody is left to stop the run: when make, which started it, was
// killed, or when its terminal is gone. make keeps a terminal's hangup to itself, so the signal alone does not do.
// A run that was told to outlive its terminal (nohup) does.
func untilOrphaned(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	parent, byMake := os.Getppid(), os.Getenv("MAKELEVEL") != ""
	atTerminal := hasTerminal() && !signal.Ignored(syscall.SIGHUP)
	if !byMake && !atTerminal {
		return ctx, cancel
	}
	go func() {
		ticker := time.NewTicker(orphanCheck)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			if byMake && os.Getppid() != parent || atTerminal && !hasTerminal() {
				cancel()
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
