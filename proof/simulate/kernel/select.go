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

// selectPlace lets Select choose a place of enabled. It returns a negative number to let time pass.
func (k *Kernel) selectPlace() int {
	ready := make([]Waiting, len(k.enabled))
	for i, place := range k.enabled {
		ready[i] = Waiting{k.ready[place].name, k.ready[place].instance}
	}
	var firstTimed time.Time
	if len(k.timed) > 0 {
		firstTimed = k.timed[0].at
	}
	place := k.Select(ready, firstTimed)
	if place < 0 {
		k.collect() // the selector may have added events
	}
	return place
}
