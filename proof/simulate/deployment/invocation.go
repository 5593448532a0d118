package deployment

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// maxIdle is the longest time that an instance is kept between invocations. Lambda ends an idle instance within hours,
// so what it had begun does not continue after that.
const maxIdle = 6 * time.Hour

// Deployment is the deployed gateway.
type Deployment struct {
	*Outside
	// TimersStop is true if the deadline of a frozen instance does not come nearer.
	TimersStop bool
	// HasNewerVersion is true if a newer version runs beside the older.
	HasNewerVersion bool
	// SMSRetention and BaseURL replace those of the environment; zero for these.
	SMSRetention time.Duration
	BaseURL      string

	pool map[string][]*Instance // by function
}

// New makes a deployment without an instance.
func New(s *Outside) *Deployment {
	return &Deployment{Outside: s, pool: map[string][]*Instance{}}
}

// Environment is the environment of every function.
func (d *Deployment) Environment(name string) string {
	switch {
	case name == settings.SMSRetention && d.SMSRetention != 0:
		return d.SMSRetention.String()
	case name == settings.AccountConcurrency && d.AccountConcurrency != 0:
		return strconv.Itoa(d.AccountConcurrency)
	case name == settings.BaseURL && d.BaseURL != "":
		return d.BaseURL
	}
	return fixture.Environment(name)
}

// Result is the result of an invocation. Lost is true if the instance crashed or timed out.
type Result struct {
	Payload []byte
	Err     error
	Lost    bool
	By      Invocation // none if nothing ran
}

// ResponseOf is the response of an invocation to an HTTP request. Without one it is 504, and came is false.
func (d *Deployment) ResponseOf(function string, r Result) (response outside.Response, came bool) {
	if r.Lost || r.Err != nil {
		return outside.Response{Status: http.StatusGatewayTimeout}, false
	}
	response, err := outside.ReadResponse(r.Payload)
	if err != nil {
		d.Fail("%s: %s", function, err)
	}
	return response, err == nil
}

// throttleWait is how long an event waits before Lambda tries again to find a free instance.
const throttleWait = 5 * time.Second

// Invoke runs a function with a payload, in an idle instance or a new one. done runs once, after the end. While no
// instance may run, a request has no response, and an event of the stream or of the schedule waits.
func (d *Deployment) Invoke(function string, payload []byte, done func(Result)) {
	switch {
	case !d.isThrottled(function):
		d.run(function, payload, done)
	case function == Relay || function == Sweep:
		d.Kernel.At(time.Now().Add(throttleWait), "throttled event", func() { d.Invoke(function, payload, done) })
	default:
		d.Kernel.At(time.Now(), "throttled request", func() { done(Result{Lost: true}) })
	}
}

// isThrottled reports whether as many instances of a function run as may. A zombie counts until it ends.
func (d *Deployment) isThrottled(function string) bool {
	running := 0
	for _, i := range d.pool[function] {
		if i.busy && !i.Crashed() {
			running++
		}
	}
	if d.Rates.Processes == 0 || running < d.Rates.Processes || !d.FaultsOn() {
		return false
	}
	d.Count("throttled: " + function)
	d.Logf("%s: throttled, nothing ran", function)
	return true
}

func (d *Deployment) run(function string, payload []byte, done func(Result)) {
	i := d.pickInstance(function)
	i.busy = true
	i.invocations++
	i.began = time.Now()
	by := i.Invocation()
	i.Thaw()
	deadline := time.Now().Add(Timeout(function))
	finished := false
	finish := func(r Result) {
		if finished {
			return
		}
		finished, i.busy = true, false
		r.By = by
		r.Lost = r.Lost || i.doomed || i.Crashed()
		if i.doomed || i.overdue {
			d.crash(i)
		}
		i.Freeze()
		i.ended = time.Now()
		d.Logf("%s: invocation ended, lost %v", i.Name, r.Lost)
		if !i.overdue {
			done(r)
		}
	}
	d.Kernel.At(deadline, function+" timeout", func() {
		switch {
		case finished:
		case i.frozen:
			d.Logf("%s: its caller gives up, while it is frozen", i.Name)
			i.overdue = true
			done(Result{Lost: true})
		default:
			d.Logf("%s: timed out", i.Name)
			d.crash(i)
			finish(Result{Lost: true})
		}
	})
	d.Logf("%s: invoked", i.Name)
	i.Start(func() {
		defer func() { finish(Result{Lost: true}) }()
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		if d.TimersStop {
			ctx, cancel = context.WithCancel(deadlineContext{context.Background(), deadline})
		}
		defer cancel()
		response, err := i.handler.Invoke(ctx, payload)
		i.returned = true
		i.Gate("end") // handlers whose timers fire together end one after the other
		i.returned = false
		// The instance freezes now. Its own task still runs, and one that waits for its place may be none of its own.
		if left := max(i.Running()-1, d.Kernel.Waiting(i.Instance)); left > 0 && !i.doomed {
			d.Observer.Outlived(i, fmt.Sprintf("%d of its tasks run", left))
		}
		finish(Result{Payload: response, Err: err})
	})
}

// deadlineContext has a deadline, and does not end at it: its timer stopped while its instance was frozen. Instances
// that do not freeze crash at their deadline.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (c deadlineContext) Deadline() (time.Time, bool) { return c.deadline, true }

// pickInstance returns an idle instance, or a new one. It ends each instance that was idle for too long.
func (d *Deployment) pickInstance(function string) *Instance {
	var kept, idle []*Instance
	for _, i := range d.pool[function] {
		switch {
		case i.Crashed():
			continue
		case !i.busy && time.Since(i.ended) > maxIdle:
			i.Crash()
			continue
		case !i.busy:
			idle = append(idle, i)
		}
		kept = append(kept, i)
	}
	d.pool[function] = kept
	if most := 3; d.AccountConcurrency > 0 && len(idle) > most { // they still know what they read
		slices.SortStableFunc(idle, func(a, b *Instance) int { return b.ended.Compare(a.ended) })
		idle = idle[:most]
	}
	if len(idle) > 0 && !d.Tape.Happens("cold start", d.Rates.ColdStart) {
		return tape.Draw(d.Tape, "instance", idle...)
	}
	return d.newInstance(function)
}

// newInstance starts an instance with its own clock and caches.
func (d *Deployment) newInstance(function string) *Instance {
	i := d.NewProgram(function)
	i.Skew = d.drawSkew()
	i.newer = d.HasNewerVersion && d.Tape.Choose("newer version", 2) == 1
	i.handler = NewHandler(function, wiring.NewDependencies(d.outsideOf(i), d.Environment))
	d.pool[function] = append(d.pool[function], i)
	return i
}

// NewProgram makes an instance of a program, beside the functions.
func (d *Deployment) NewProgram(name string) *Instance {
	return &Instance{Instance: d.Kernel.NewInstance(name), Function: name}
}

// drawSkew draws how much a clock is wrong.
func (d *Deployment) drawSkew() time.Duration {
	if d.Rates.Skew == 0 {
		return 0
	}
	return tape.Draw(d.Tape, "clock skew", 0, time.Second, -time.Second, 20*time.Second, -20*time.Second)
}
