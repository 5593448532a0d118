package gatewayctl

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// isWatched reports whether a line may have the flag --watch. Its command then decides.
func isWatched(arguments []string) bool {
	for _, argument := range arguments {
		if name, _, _ := strings.Cut(argument, "="); name == "--"+session.WatchName {
			return true
		}
	}
	return false
}

// watch runs a command again and again, until it is interrupted or the line is wrong. Each run is a new one: it
// connects, and reads today's day. A first run that fails is the end. A later failure is shown, and the next run may
// succeed. A terminal shows only the last run.
func (t *Tool) watch(ctx context.Context, arguments []string, system deployment.System) int {
	for runs := 1; ; runs++ {
		var out, notes bytes.Buffer
		once := system
		once.Stdout, once.Stderr = &out, &notes
		code := t.runOnce(ctx, arguments, once)
		if code == ExitUsage || t.interval == 0 || runs == 1 && code == ExitFailed {
			_, _ = system.Stdout.Write(out.Bytes()) // a closed output has no reader to inform
			_, _ = system.Stderr.Write(notes.Bytes())
			return code
		}
		if ctx.Err() != nil {
			return ExitDone
		}
		clearing := ""
		if system.Width() > 0 {
			clearing = output.ClearScreen
		}
		_, err := fmt.Fprintf(system.Stdout, "%s%s, every %s\n%s%s", clearing, output.FormatTime(system.Now()),
			time.Duration(t.interval), out.String(), notes.String())
		if err != nil || system.Pause(ctx, time.Duration(t.interval)) != nil {
			return ExitDone
		}
	}
}

// watchInterval returns the interval of a parsed line, 0 for a single run.
func watchInterval(parsed *kong.Context) session.Interval {
	for _, element := range parsed.Path {
		if element.Flag != nil && element.Flag.Name == session.WatchName {
			interval, _ := parsed.FlagValue(element.Flag).(session.Interval)
			return interval
		}
	}
	return 0
}
