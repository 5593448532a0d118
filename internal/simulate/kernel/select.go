package kernel

import (
	"slices"
	"time"
)

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

// selectPending lets Select choose. It removes and returns the next task or event, nil to let time pass.
func (k *Kernel) selectPending() *parked {
	var ready []Waiting
	k.enabled = k.enabled[:0]
	for i, p := range k.ready {
		if p.until == nil || p.canResume() {
			ready, k.enabled = append(ready, Waiting{p.name, p.instance}), append(k.enabled, i)
		}
	}
	var firstTimed time.Time
	if len(k.timed) > 0 {
		firstTimed = k.timed[0].at
	}
	place := k.Select(ready, firstTimed)
	if place < 0 {
		k.collect() // the selector may have added events
		return nil
	}
	place = k.enabled[place]
	next := k.ready[place]
	k.ready = slices.Delete(k.ready, place, place+1)
	return next
}
