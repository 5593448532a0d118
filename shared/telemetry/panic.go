package telemetry

import (
	"fmt"
	"runtime"
	"strings"
)

// CatchPanic runs a function and returns its error. A panic becomes an error too, so that one request or message does
// not end the process or the work on the others.
func CatchPanic(run func() error) (err error) {
	defer func() {
		if panicValue := recover(); panicValue != nil {
			err = describePanic(panicValue)
		}
	}()
	return run()
}

// describePanic returns the type and the place of a panic. It omits the value, which may contain a client's data.
func describePanic(panicValue any) error {
	const maxFrames = 32
	callers := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	afterPanic := false
	for {
		frame, more := frames.Next()
		if afterPanic && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Errorf("panic %T in %s line %d", panicValue, frame.Function, frame.Line)
		}
		afterPanic = afterPanic || frame.Function == "runtime.gopanic"
		if !more {
			return fmt.Errorf("panic %T", panicValue)
		}
	}
}
