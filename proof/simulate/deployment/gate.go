package deployment

import (
	"net/http"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
)

// Observer learns what the deployment does.
type Observer interface {
	// Requested receives each HTTP request of a function, and its body.
	Requested(function string, request *http.Request, body []byte)
	// Exchanged receives the end of each exchange of an instance with an operator.
	Exchanged(i *Instance, response outside.Exchange)
	// EndedEarly receives an instance that ended its exchange with an operator before the deadline, and how long that
	// has waited.
	EndedEarly(i *Instance, waited time.Duration)
	// LearnedCircuits receives what an instance reads of the circuits of an account, and since when it waited for that.
	// isRead is false if it learned them by a write.
	LearnedCircuits(i *Instance, account string, forms map[string]string, since time.Time, isRead bool)
	// Logged receives each log line of an instance.
	Logged(instance string, line []byte)
	// Interrupted receives a function. An instance of it crashes or freezes, or does not know whether it has written.
	Interrupted(function string)
	// Outlived receives an instance whose invocation has returned, and what it still does.
	Outlived(i *Instance, what string)
	// Failed receives the table of each call that fails.
	Failed(table string)
	// Changed receives each change of a table, and the instance that made it, nil for none.
	Changed(change mirror.Change, writer *Instance)
	// Followed receives the end of the changes of a step, and whether there was any.
	Followed(hasChanged bool)
}

// Gate lets instances crash and freeze around their outside calls.
type Gate struct {
	*history.History
	Observer Observer

	prone prone
}

// prone are calls around which instances crash often, so that each call is crashed also where it is rare. The zero
// value has none.
type prone struct {
	rate    int // per mille
	matches func(function, call string) bool
}

// CrashOften makes crashes frequent around some calls.
func (g *Gate) CrashOften(matches func(function, call string) bool) {
	g.prone = prone{tape.Draw(g.Tape, "rate of crashes at these calls", 100, 200, 400), matches}
}

// CrashAlways lets instances crash around each of some calls.
func (g *Gate) CrashAlways(matches func(function, call string) bool) { g.prone = prone{1000, matches} }

// MayCrash reports whether instances may crash.
func (g *Gate) MayCrash() bool { return g.Rates.Crash > 0 || g.prone.rate > 0 }

// crashRate is the rate of crashes around a call of a function, per mille.
func (g *Gate) crashRate(function, call string) int {
	if g.prone.matches == nil || !g.prone.matches(function, call) {
		return g.Rates.Crash
	}
	return max(g.Rates.Crash, g.prone.rate)
}

// Pass parks the calling task, and decides about crashes and freezes around the call.
func (g *Gate) Pass(i *Instance, call string) {
	if i.returned {
		g.Observer.Outlived(i, "calls "+call)
	}
	if i.doomed {
		g.crash(i)
	}
	i.Gate(call)
	site := g.Sites.Of(i.Function, call)
	site.Calls++
	if !g.FaultsOn() {
		return
	}
	if g.Tape.Happens("crash", g.crashRate(i.Function, call)) {
		if g.Tape.Choose("crash after the call", 2) == 0 {
			site.Before++
			g.Count("crash before a call")
			g.Logf("%s: crashes before %s", i.Name, call)
			g.crash(i)
			i.Exit()
		}
		site.After++
		g.Count("crash after a call")
		g.Logf("%s: crashes after %s", i.Name, call)
		i.doomed = true
	}
	if g.Tape.Happens("freeze", g.Rates.Freeze) {
		g.freeze(i, call)
	}
}

// freeze stops all tasks of an instance for a time, and then lets the calling one continue: perhaps after the lease of
// its reservation.
func (g *Gate) freeze(i *Instance, call string) {
	if i.frozen {
		return
	}
	wait := tape.Draw(g.Tape, "length of the freeze", 10*time.Second, 45*time.Second, 3*time.Minute)
	g.Count("freeze for " + wait.String())
	g.Logf("%s: freezes for %s before %s", i.Name, wait, call)
	g.Observer.Interrupted(i.Function) // a write that is sent after its time limit has no response
	i.frozen = true
	i.Freeze()
	g.Kernel.At(time.Now().Add(wait), "thaw", func() {
		g.Logf("%s: thaws", i.Name)
		i.frozen = false
		i.Thaw()
		if i.overdue {
			g.Kernel.At(time.Now().Add(30*time.Second), "end of a zombie", func() { g.crash(i) })
		}
	})
	i.Gate("thawed " + call)
}

func (g *Gate) crash(i *Instance) {
	g.Observer.Interrupted(i.Function)
	i.Crash()
}
