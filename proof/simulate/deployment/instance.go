// Package deployment simulates the gateway as it is deployed: the instances of its functions, the faults around their
// outside calls, the stream and the schedule.
package deployment

import (
	"time"

	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/shared/wiring"
)

// Instance is one instance of a function, or of a program of an engineer. It handles one invocation at a time.
type Instance struct {
	*kernel.Instance
	Function string
	// IsAudited is true of an engineer's instance that has written an audit record.
	IsAudited bool

	handler     wiring.Handler
	busy        bool
	frozen      bool // for a time, within an invocation
	doomed      bool // it crashes before it does anything else outside
	returned    bool // its invocation has returned, and is ending
	overdue     bool // it was frozen when its time was over, so it is still running
	newer       bool // it is of a newer version
	invocations int  // that it has begun
	began       time.Time
	ended       time.Time
}

// Is reports whether the instance is one of a function; nil is none.
func (i *Instance) Is(function string) bool { return i != nil && i.Function == function }

// Began is when the last invocation of the instance began.
func (i *Instance) Began() time.Time { return i.began }

// Program names the function or the program of the instance; nil is the history itself.
func (i *Instance) Program() string {
	if i == nil {
		return "history"
	}
	return i.Function
}

// Invocation is one invocation of an instance; the zero value is none.
type Invocation struct {
	instance *Instance
	number   int
}

// Invocation returns the instance's last invocation, none for nil.
func (i *Instance) Invocation() Invocation {
	if i == nil {
		return Invocation{}
	}
	return Invocation{i, i.invocations}
}

// IsRunning reports whether the invocation is still running.
func (v Invocation) IsRunning() bool {
	i := v.instance
	return i != nil && i.busy && i.invocations == v.number && !i.overdue && !i.doomed && !i.Crashed()
}
