package circuit

import (
	"sync"
	"time"
)

// checkInterval is the time between two looks of a slow call at its circuit.
const checkInterval = 200 * time.Millisecond

// Call observes one operator call, which may have several exchanges: the last one decides. It implements
// upstream.Observer. It counts as a failure once it has waited for SlowAfter. From then on it looks at its circuit: if
// that is open, it ends an exchange of a transaction that has waited for SlowAfter too. It never ends a probe.
type Call struct {
	circuits *Circuits
	key      Key
	probe    Probe

	mutex    sync.Mutex
	stop     func() // of the timer; nil before the first exchange
	slowSlot int64  // when it became slow; 0 for never
	last     Evidence
	ended    bool

	endExchange   func() // nil if the exchange may not be ended
	exchangeBegan time.Time
}

// Begin begins a call of an account, with the probe that it is, if any. End must be called. nil has no calls.
func (c *Circuits) Begin(key Key, probe Probe) *Call {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	delete(c.unused, probe)
	c.mutex.Unlock()
	return &Call{circuits: c, key: key, probe: probe}
}

// ExchangeBegins is called before each exchange. end ends it early as a time-out; nil for one that may not be ended.
func (c *Call) ExchangeBegins(end func()) {
	c.mutex.Lock()
	c.last, c.endExchange, c.exchangeBegan = None, end, c.circuits.Now()
	if c.stop == nil {
		c.stop = c.circuits.After(SlowAfter, c.becomesSlow)
	}
	c.mutex.Unlock()
}

// ExchangeEnds is called after each exchange.
func (c *Call) ExchangeEnds(e Evidence) {
	c.mutex.Lock()
	c.last, c.endExchange = e, nil
	c.mutex.Unlock()
}

// becomesSlow counts a call that still waits.
func (c *Call) becomesSlow() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ended {
		return
	}
	c.slowSlot = slotOf(c.circuits.Now().UnixMilli())
	c.circuits.record(c.key, []Results{{Slot: c.slowSlot, Failures: 1, Slow: 1}})
	if c.probe.lapse == 0 {
		c.endIfOpen()
	}
}

// look reads the circuit again if it is time for that, and ends the exchange if it is open.
func (c *Call) look() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ended {
		return
	}
	isRead := c.circuits.refresh(c.key, func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.endIfOpen()
	})
	if !isRead {
		c.endIfOpen()
	}
}

// endIfOpen ends an exchange that has waited for SlowAfter if its circuit is open, and looks again later. The caller
// has locked the call.
func (c *Call) endIfOpen() {
	if c.ended {
		return
	}
	isSlow := c.endExchange != nil && c.circuits.Now().Sub(c.exchangeBegan) >= SlowAfter
	if isSlow && c.circuits.isOpen(c.key) {
		c.endExchange()
	}
	c.stop = c.circuits.After(checkInterval, c.look)
}

// End ends the call, and counts it. A success takes back that the call was slow. nil does nothing.
func (c *Call) End() {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.ended = true
	if c.stop != nil {
		c.stop()
	}
	isSlow, evidence := c.slowSlot != 0, c.last
	if evidence == TimedOut {
		evidence = None // our own time was short
		if isSlow {
			evidence = Failed
		}
	}
	now := Results{Slot: slotOf(c.circuits.Now().UnixMilli())}
	slow := Results{Slot: c.slowSlot}
	switch {
	case evidence == Responded:
		now.Successes = 1
	case evidence == Failed && !isSlow:
		now.Failures = 1
	}
	if isSlow {
		slow.Slow = -1
		if evidence != Failed {
			slow.Failures = -1
		}
	}
	c.circuits.record(c.key, []Results{now, slow})
	if c.probe.lapse != 0 {
		c.circuits.endProbe(c.key, &report{
			probe: c.probe.lapse, began: c.probe.lapse - c.circuits.ProbeLapse.Milliseconds(), outcome: evidence,
		})
	}
}
