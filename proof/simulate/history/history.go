// Package history has what all parts of one history share: its choices, its clock, the rates of its faults, and the
// record of what it shows. It has no rule of the gateway.
package history

import (
	"time"

	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
)

// maxSteps bounds a history.
const maxSteps = 1_000_000

// History is one history.
type History struct {
	Tape   *tape.Tape
	Kernel *kernel.Kernel
	Rates  Rates
	// Faults are the rates of the models' faults. Confined are those of the one merchant and the one operator with
	// faults, nil in other histories.
	Faults, Confined *outside.Faults
	Times
	Record
}

// Rates are the rates of the faults of the deployment, per mille.
type Rates struct {
	// Processes is the most instances of a function that run at a time, 0 for no bound.
	Processes int

	Table, Lag, Crash, Freeze, ColdStart, Skew      int
	LostResponse, LateStream, DoubleStream, NoSweep int
	DoubleSweep                                     int
}

// New begins a history. Call it in a bubble of testing/synctest.
func New(choices *tape.Tape) *History {
	h := &History{
		Tape: choices, Kernel: kernel.New(choices), Faults: &outside.Faults{},
		Record: Record{faults: map[string]int{}, Sites: Sites{}, Rows: map[string]int{}},
	}
	h.Kernel.MaxSteps = maxSteps
	return h
}

// EndFaults ends the faults of the models.
func (h *History) EndFaults() {
	h.Logf("the faults end")
	h.Faults.Rates = nil
	if h.Confined != nil {
		h.Confined.Rates = nil
	}
}

// HappensNow reports whether a fault with a rate per mille happens. None does after the end of the faults.
func (h *History) HappensNow(label string, perMille int) bool {
	return h.FaultsOn() && h.Tape.Happens(label, perMille)
}

// DrawStart draws when something begins.
func (h *History) DrawStart(length time.Duration) time.Time {
	const parts = 8
	return Start.Add(length / parts * time.Duration(h.Tape.Choose("start of a hazard", parts)))
}

// DrawWindow draws when something is broken. The world is calm only after the end.
func (h *History) DrawWindow(length time.Duration, lengths ...time.Duration) outside.Window {
	from := h.DrawStart(length)
	to := from.Add(tape.Draw(h.Tape, "length of a hazard", lengths...))
	h.BrokenUntil(to)
	return outside.Window{From: from, To: to}
}

// FaultCounts returns the counts of all injected faults by kind.
func (h *History) FaultCounts() map[string]int {
	for _, source := range []*outside.Faults{h.Faults, h.Confined} {
		if source == nil {
			continue
		}
		for group, faults := range source.Taken {
			for fault, number := range faults {
				h.faults[string(group)+": "+string(fault)] += number
			}
		}
	}
	return h.faults
}
