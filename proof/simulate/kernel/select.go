package kernel

import "time"

// Waiting is a task or an event that can be resumed now.
type Waiting struct {
	// Name is the name of the outside call or of the event.
	Name string
	// Instance is nil for an event.
	Instance *Instance
}

// Selector chooses the next one of those that can be resumed. firstTimed is the time of the first one that waits for a
// time, zero for none. A negative number lets time pass to it.
type Selector func(ready []Waiting, firstTimed time.Time) int
