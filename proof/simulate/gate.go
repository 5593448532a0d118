package simulate

import (
	"time"

	"mobilegateway/proof/simulate/tape"
)

// gate parks the calling task, and decides about crashes and freezes around the call.
func (w *World) gate(i *instance, call string) {
	if i.doomed {
		w.crash(i)
	}
	i.Gate(call)
	site := w.Sites.Of(i.function, call)
	site.Calls++
	if !w.FaultsOn() {
		return
	}
	if w.Tape.Happens("crash", w.crashRate(i.function, call)) {
		if w.Tape.Choose("crash after the call", 2) == 0 {
			site.Before++
			w.Count("crash before a call")
			w.Logf("%s: crashes before %s", i.Name, call)
			w.crash(i)
			i.Exit()
		}
		site.After++
		w.Count("crash after a call")
		w.Logf("%s: crashes after %s", i.Name, call)
		i.doomed = true
	}
	if w.Tape.Happens("freeze", w.Rates.Freeze) {
		w.freeze(i, call)
	}
}

// freeze stops all tasks of an instance for a time, and then lets the calling one continue: perhaps after the lease of
// its reservation.
func (w *World) freeze(i *instance, call string) {
	if i.frozen {
		return
	}
	wait := tape.Draw(w.Tape, "length of the freeze", 10*time.Second, 45*time.Second, 3*time.Minute)
	w.Count("freeze for " + wait.String())
	w.Logf("%s: freezes for %s before %s", i.Name, wait, call)
	// A write that is sent after its time limit has no response: its caller does not refund, as after a crash.
	w.amountsMayStay = w.amountsMayStay || countsAmounts(i.function)
	i.frozen = true
	i.Freeze()
	w.Kernel.At(time.Now().Add(wait), "thaw", func() {
		w.Logf("%s: thaws", i.Name)
		i.frozen = false
		i.Thaw()
		if i.overdue {
			w.Kernel.At(time.Now().Add(30*time.Second), "end of a zombie", func() { w.crash(i) })
		}
	})
	i.Gate("thawed " + call)
}

func (w *World) crash(i *instance) {
	w.amountsMayStay = w.amountsMayStay || countsAmounts(i.function)
	i.Crash()
}
