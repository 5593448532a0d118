package childprocess_test

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"mobilegateway/internal/childprocess"
)

func TestRun(t *testing.T) {
	if err := childprocess.Run(exec.CommandContext(t.Context(), "true"), time.Minute); err != nil {
		t.Errorf("true: %v", err)
	}
	var failed *exec.ExitError
	if err := childprocess.Run(exec.CommandContext(t.Context(), "false"), time.Minute); !errors.As(err, &failed) {
		t.Errorf("false: %v, want an exit status", err)
	}
}

// TestRunEndsGroup: the end of the context also ends what the command has started.
func TestRunEndsGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, "sh", "-c", "sleep 600 & echo started; wait")
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- childprocess.Run(command, time.Minute) }()
	if _, err := io.ReadFull(output, make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, _ = io.Copy(io.Discard, output) // until both have ended; Wait may close it first
	if err := <-ended; err == nil {
		t.Error("the command succeeded")
	}
}
