package circuit

import "sync"

// Call observes one operator call, which may have several exchanges: the last one decides. It implements
// upstream.Observer. It counts as a failure once it has waited for SlowAfter.
type Call struct {
	circuits *Circuits
	key      Key
	probe    Probe

	mutex    sync.Mutex
	stop     func() // of the timer; nil before the first exchange
	slowSlot int64  // when it became slow; 0 for never
	last     Evidence
	ended    bool
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

// ExchangeBegins is called before each exchange.
func (c *Call) ExchangeBegins() {
	c.mutex.Lock()
	c.last = None
	if c.stop == nil {
		c.stop = c.circuits.After(SlowAfter, c.becomesSlow)
	}
	c.mutex.Unlock()
}

// ExchangeEnds is called after each exchange.
func (c *Call) ExchangeEnds(e Evidence) {
	c.mutex.Lock()
	c.last = e
	c.mutex.Unlock()
}

// becomesSlow counts a call that still waits.
func (c *Call) becomesSlow() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.ended {
		c.slowSlot = slotOf(c.circuits.Now().UnixMilli())
		c.circuits.record(c.key, []Results{{Slot: c.slowSlot, Failures: 1, Slow: 1}})
	}
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
		c.circuits.endProbe(c.key, &report{probe: c.probe.lapse, outcome: evidence})
	}
}
