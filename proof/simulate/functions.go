package simulate

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"mobilegateway/functions/charge"
	"mobilegateway/functions/notif"
	"mobilegateway/functions/pay"
	"mobilegateway/functions/receipt"
	"mobilegateway/functions/relay"
	"mobilegateway/functions/sms"
	"mobilegateway/functions/status"
	"mobilegateway/functions/sweep"
	"mobilegateway/functions/token"
	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
	model "mobilegateway/world/dynamodb"
)

// The functions of a world.
const (
	functionCharge  = "charge"
	functionPay     = "pay"
	functionSMS     = "sms"
	functionNotif   = "notif"
	functionReceipt = "receipt"
	functionStatus  = "status"
	functionToken   = "token"
	functionRelay   = "relay"
	functionSweep   = "sweep"
)

// functionTimeouts are the timeouts of template.yaml.
var functionTimeouts = map[string]time.Duration{functionSweep: time.Minute}

const defaultTimeout = 20 * time.Second

// maxIdle is the longest time that an instance is kept between invocations. Lambda ends an idle instance within hours,
// so what it had begun does not continue after that.
const maxIdle = 6 * time.Hour

// constructors build the functions as they ship.
var constructors = map[string]func(*wiring.Dependencies) (wiring.Handler, error){
	functionCharge: charge.New, functionPay: pay.New, functionSMS: sms.New, functionNotif: notif.New,
	functionReceipt: receipt.New, functionStatus: status.New, functionToken: token.New,
	functionRelay: relay.New, functionSweep: sweep.New,
}

// instance is one instance of a function. It handles one invocation at a time.
type instance struct {
	*kernel.Instance
	function string
	handler  wiring.Handler
	busy     bool
	frozen   bool // for a time, within an invocation
	doomed   bool // it crashes before it does anything else outside
	overdue  bool // it was frozen when its time was over, so it is still running
	newer    bool // it is of a newer version
	// isAudited is true of an engineer's instance that has written an audit record.
	isAudited bool
	// invocations is the number of invocations that it has begun.
	invocations int
	ended       time.Time // when its last invocation ended
}

// result is the result of an invocation. lost is true if the instance crashed or timed out.
type result struct {
	payload []byte
	err     error
	lost    bool
}

// responseOf is the response of an invocation to an HTTP request. Without one it is 504, and came is false.
func (w *World) responseOf(function string, r result) (response outside.Response, came bool) {
	if r.lost || r.err != nil {
		return outside.Response{Status: http.StatusGatewayTimeout}, false
	}
	response, err := outside.ReadResponse(r.payload)
	if err != nil {
		w.Fail("%s: %s", function, err)
	}
	return response, err == nil
}

// invoke runs a function with a payload, in an idle instance or a new one. done runs once, after the end.
func (w *World) invoke(function string, payload []byte, done func(result)) {
	i := w.pickInstance(function)
	i.busy = true
	i.invocations++
	i.Thaw()
	deadline := time.Now().Add(cmp.Or(functionTimeouts[function], defaultTimeout))
	finished := false
	finish := func(r result) {
		if finished {
			return
		}
		finished, i.busy = true, false
		r.lost = r.lost || i.doomed || i.Crashed()
		if i.doomed || i.overdue {
			w.crash(i)
		}
		i.Freeze()
		i.ended = time.Now()
		w.Logf("%s: invocation ended, lost %v", i.Name, r.lost)
		if !i.overdue {
			done(r)
		}
	}
	w.Kernel.At(deadline, function+" timeout", func() {
		switch {
		case finished:
		case i.frozen:
			w.Logf("%s: its caller gives up, while it is frozen", i.Name)
			i.overdue = true
			done(result{lost: true})
		default:
			w.Logf("%s: timed out", i.Name)
			w.crash(i)
			finish(result{lost: true})
		}
	})
	w.Logf("%s: invoked", i.Name)
	i.Start(func() {
		defer func() { finish(result{lost: true}) }()
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		if w.timersStop {
			ctx, cancel = context.WithCancel(deadlineContext{context.Background(), deadline})
		}
		defer cancel()
		response, err := i.handler.Invoke(ctx, payload)
		i.Gate("end") // handlers whose timers fire together end one after the other
		finish(result{payload: response, err: err})
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
func (w *World) pickInstance(function string) *instance {
	var kept, idle []*instance
	for _, i := range w.pool[function] {
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
	w.pool[function] = kept
	if len(idle) > 0 && !w.Tape.Happens("cold start", w.Rates.ColdStart) {
		return idle[w.Tape.Choose("instance", len(idle))]
	}
	return w.newInstance(function)
}

// newInstance starts an instance with its own clock and caches.
func (w *World) newInstance(function string) *instance {
	i := &instance{Instance: w.Kernel.NewInstance(function), function: function}
	i.Skew = w.drawSkew()
	i.newer = w.hasNewerVersion && w.Tape.Choose("newer version", 2) == 1
	i.handler = must(constructors[function](wiring.NewDependencies(w.outsideOf(i), w.environment)))
	w.pool[function] = append(w.pool[function], i)
	return i
}

// drawSkew draws how much a clock is wrong.
func (w *World) drawSkew() time.Duration {
	if w.Rates.Skew == 0 {
		return 0
	}
	return tape.Draw(w.Tape, "clock skew", 0, time.Second, -time.Second, 20*time.Second, -20*time.Second)
}

// environment is the environment of every function.
func (w *World) environment(name string) string {
	if name == settings.SMSRetention && w.smsRetention != 0 {
		return w.smsRetention.String()
	}
	if name == settings.BaseURL && w.platforms != nil {
		return platformBaseURL
	}
	return variables[name]
}

// tableClient is the client of one instance.
func (w *World) tableClient(i *instance) client {
	attempts := model.NewClient(w.database)
	attempts.Gate = func(_ context.Context, call model.Call) model.Decision { return w.tableGate(i, call) }
	attempts.Sleep = func(ctx context.Context, wait time.Duration) { _ = i.Sleep(ctx, wait) }
	attempts.Late = func(call model.Call, apply func()) { w.applyLate(i, call, apply) }
	return client{attempts, w, i}
}

// outsideOf connects an instance with the models.
func (w *World) outsideOf(i *instance) wiring.Outside {
	tableClient := w.tableClient(i)
	return wiring.Outside{
		DynamoDB:          func() wiring.DynamoDB { return tableClient },
		SecretSource:      func() secret.Source { return secretSource{w, i} },
		OpenDynamoDB:      func(context.Context) error { return nil },
		OperatorTransport: transport{w, i, w.serveOperator, true},
		MerchantTransport: transport{w, i, w.serveMerchant, false},
		Now:               i.Now,
		Rand:              i,
		Sleep:             i.Sleep,
		Await:             i.Await,
		Start:             i.Start,
		Log:               logWriter{w, i},
	}
}

// secretSource reads secrets for one instance.
type secretSource struct {
	world    *World
	instance *instance
}

// Fetch implements secret.Source.
func (s secretSource) Fetch(ctx context.Context, id string) ([]byte, error) {
	s.world.gate(s.instance, "secret "+id)
	value, err := s.world.secrets.Fetch(time.Now(), id, s.world.Tape)
	if err == context.DeadlineExceeded { //nolint:errorlint // the model's own value
		_ = s.instance.Sleep(ctx, time.Hour)
	}
	return value, err
}

// transport sends the HTTP requests of one instance.
type transport struct {
	world    *World
	instance *instance
	serve    func(*http.Request, []byte) exchange
	// sendsLate is true if a request that was about to be sent is sent also after a freeze that outlasted its context.
	sendsLate bool
}

// logWriter checks and counts the log lines of one instance.
type logWriter struct {
	world    *World
	instance *instance
}

// Write implements io.Writer. It drops what the deferred functions of a crashed instance write: its process has ended.
func (l logWriter) Write(line []byte) (int, error) {
	if !l.instance.Crashed() {
		l.world.checkLogLine(l.instance, line)
	}
	return len(line), nil
}
