package apigw

import (
	"fmt"
	"runtime"
	"strings"
)

// catchPanic runs a function and returns its results. A panic becomes an error, so that one request does not end the
// process.
func catchPanic(run func() (Response, error)) (response Response, err error) {
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
