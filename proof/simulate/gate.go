package simulate

import (
	"time"

	"mobilegateway/proof/simulate/outside"
)

// siteName names an outside call of a function.
type siteName struct{ function, call string }

// Site is an outside call of a function: how often it was made, and how often the instance crashed before and after it.
type Site struct {
	Function, Call       string
	Calls, Before, After int
}

// siteOf returns the counts of an outside call.
func siteOf(sites map[siteName]*Site, function, call string) *Site {
	name := siteName{function, call}
	if sites[name] == nil {
		sites[name] = &Site{Function: function, Call: call}
	}
	return sites[name]
}

// gate parks the calling task, and decides about crashes and freezes around the call.
func (w *World) gate(i *instance, call string) {
	if i.doomed {
		w.crash(i)
	}
	i.Gate(call)
	site := siteOf(w.sites, i.function, call)
	site.Calls++
	if !w.faultsOn() {
		return
	}
	if w.tape.Happens("crash", w.crashRate(i.function, call)) {
		if w.tape.Choose("crash after the call", 2) == 0 {
			site.Before++
			w.count("crash before a call")
			w.logf("%s: crashes before %s", i.Name, call)
			w.crash(i)
			i.Exit()
		}
		site.After++
		w.count("crash after a call")
		w.logf("%s: crashes after %s", i.Name, call)
		i.doomed = true
	}
	if w.tape.Happens("freeze", w.rates.freeze) {
		w.freeze(i, call)
	}
}

// freeze stops all tasks of an instance for a time, and then lets the calling one continue: perhaps after the lease of
// its reservation.
func (w *World) freeze(i *instance, call string) {
	if i.frozen {
		return
	}
	wait := draw(w, "length of the freeze", 10*time.Second, 45*time.Second, 3*time.Minute)
	w.count("freeze for " + wait.String())
	w.logf("%s: freezes for %s before %s", i.Name, wait, call)
	// A write that is sent after its time limit has no response: its caller does not refund, as after a crash.
	w.amountsMayStay = w.amountsMayStay || countsAmounts(i.function)
	i.frozen = true
	i.Freeze()
	w.kernel.At(time.Now().Add(wait), "thaw", func() {
		w.logf("%s: thaws", i.Name)
		i.frozen = false
		i.Thaw()
		if i.overdue {
			w.kernel.At(time.Now().Add(30*time.Second), "end of a zombie", func() { w.crash(i) })
		}
	})
	i.Gate("thawed " + call)
}

func (w *World) crash(i *instance) {
	w.amountsMayStay = w.amountsMayStay || countsAmounts(i.function)
	i.Crash()
}

// count counts a fault of the world's own.
func (w *World) count(kind string) { w.faultsBy[kind]++ }

// faultCounts returns the counts of all faults by kind.
func (w *World) faultCounts() map[string]int {
	for _, source := range []*outside.Faults{w.faults, w.confined} {
		if source == nil {
			continue
		}
		for group, faults := range source.Taken {
			for fault, number := range faults {
				w.faultsBy[string(group)+": "+string(fault)] += number
			}
		}
	}
	return w.faultsBy
}
