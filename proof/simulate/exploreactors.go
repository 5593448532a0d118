package simulate

import (
	"cmp"
	"context"
	"time"

	"mobilegateway/proof/simulate/outside"
	model "mobilegateway/world/dynamodb"
)

// The actors of a world.
const (
	actorFirst    = 'R' // a request
	actorCallback = 'C'
	actorSweep    = 'S'
	actorRelay    = 'L'
	actorPerson   = 'A'
)

// actor is one of the concurrent parts of a world. It acts once.
type actor struct {
	name           string
	kind           rune
	started, ended bool
	// stalled is true if time passes, or has passed, before the next step of its invocation. That is at stalledAt.
	stalled   bool
	stalledAt time.Time
	made      access // by the calls so far
	hasResult bool   // it has written to a table after its calls of the operator
	act       access // of a person: what the chosen act can reach
	*exploredInstance
	enabled func() bool
	start   func()
}

// over reports whether the actor has ended, and no task continues behind its invocation.
func (a *actor) over() bool { return a.ended && !a.Busy() }

// inFlight reports whether the actor acts. Tasks of its last invocation may continue before it starts again.
func (a *actor) inFlight() bool { return a.started && !a.ended || a.Busy() }

// mustStall reports whether time must pass before the actor's next step.
func (a *actor) mustStall() bool { return a.inFlight() && a.stalled && !time.Now().After(a.stalledAt) }

// newActor makes an actor of a kind.
func (x *explorer) newActor(kind rune, name, function string) *actor {
	a := &actor{name: name, kind: kind, exploredInstance: x.newInstance(function)}
	a.enabled = func() bool { return true }
	x.actors = append(x.actors, a)
	x.offer(a)
	return a
}

// offer lets the search start an actor.
func (x *explorer) offer(a *actor) {
	a.started, a.ended, a.made, a.hasResult = false, false, access{}, false
	x.world.Kernel.At(time.Time{}, a.name, func() {
		if x.quiet {
			return
		}
		a.started = true
		x.world.Logf("-- %s", a.name)
		a.start()
	})
}

// addActors adds the actors of a world.
func (x *explorer) addActors() {
	number := 0
	for _, kind := range x.scope.Actors {
		switch kind {
		case actorFirst:
			number++
			x.addRequest([]string{"request 1", "request 2"}[number-1])
		case actorCallback:
			x.addCallback("callback")
		case actorSweep:
			a := x.newActor(kind, "sweep", functionSweep)
			a.enabled = func() bool { due := x.world.firstDue(); return !due.IsZero() && !due.After(time.Now()) }
			a.start = func() { x.invoke(a, []byte(`{}`), func(result) {}) }
		case actorRelay:
			x.addRelay()
		case actorPerson:
			x.addPerson()
		}
	}
}

// addRequest adds a request of the order. The second one starts after the first one, which loses nothing: the requests
// are equal, and what they draw depends on the order in which they start.
func (x *explorer) addRequest(name string) *actor {
	w, o := x.world, x.order
	a := x.newActor(actorFirst, name, o.function)
	before := x.lastRequest
	x.lastRequest = a
	a.enabled = func() bool { return x.scope.Full || before == nil || before.started }
	a.start = func() {
		x.requests++
		a.drawFrom(firstRequest + x.requests)
		x.invoke(a, o.event, func(r result) {
			response, came := w.responseOf(o.function, r)
			if !came {
				return
			}
			w.Logf("%s: response %d %s", a.name, response.Status, response.MessageID)
			w.checker.response(o, response)
			o.responses = append(o.responses, response)
		})
	}
	return a
}

// addCallback adds one callback of the operator. A fault of its content adds another one.
func (x *explorer) addCallback(name string) *actor {
	a := x.newActor(actorCallback, name, functionNotif)
	if x.order.function == functionSMS {
		a.exploredInstance = x.newInstance(functionReceipt)
	}
	a.enabled = func() bool {
		_, soon := x.nextCallback()
		return len(x.callbacks) > 0 || soon
	}
	a.start = func() {
		if next, soon := x.nextCallback(); soon && len(x.callbacks) == 0 {
			x.jump(next)
			x.world.Kernel.At(next, eventContinues, func() { x.sendCallback(a) })
			return
		}
		x.sendCallback(a)
	}
	return a
}

// nextCallback is the time of the operator's next own event, if that is soon.
func (x *explorer) nextCallback() (time.Time, bool) {
	if x.operator == nil {
		return time.Time{}, false
	}
	next, found := x.operator.Next()
	if next.Before(time.Now()) {
		next = time.Now()
	}
	return next, found && time.Until(next) <= maxSoon
}

// sendCallback sends one of the callbacks that are due.
func (x *explorer) sendCallback(a *actor) {
	w := x.world
	x.callbacks = append(x.callbacks, x.operator.Due(time.Now())...)
	if len(x.callbacks) == 0 { // it was a decision of the payer, or a late arrival
		a.ended = true
		x.offer(a)
		return
	}
	place := 0
	if x.preparing == nil {
		place = x.search.choose("which callback", len(x.callbacks))
	}
	callback := x.callbacks[place]
	x.callbacks = append(x.callbacks[:place:place], x.callbacks[place+1:]...)
	payload, err := outside.CallbackEvent(callback.URL, callback.Body)
	if err != nil {
		w.Fail("%s", err)
		return
	}
	x.invoke(a, payload, func(r result) {
		response, _ := w.responseOf(a.function, r)
		w.Logf("callback %s: response %d", callback.Status, response.Status)
		w.checker.callback(callback, response.Status)
		x.operator.Report(time.Now(), callback, response.Status)
		if x.moreCallbacks > 0 && !r.lost { // else the others come in the quiet end
			x.moreCallbacks--
			x.offer(a)
		}
	})
}

// addRelay adds one batch of the stream. A fault makes the stream deliver it again.
func (x *explorer) addRelay() {
	a := x.newActor(actorRelay, "relay", functionRelay)
	a.enabled = func() bool { return len(x.records) > 0 }
	a.start = func() {
		batch := x.records
		x.records = nil
		a.tasksMeet = a.calls.invocations > 0 || len(batch) > 1 // tasks of an earlier batch may not have ended
		a.tasks.isOn = a.tasksMeet
		x.invoke(a, model.LambdaEvent(batch...), func(r result) {
			if r.lost || r.err != nil {
				x.records = append(batch, x.records...)
				return
			}
			if x.fault("the stream delivers the batch again", 1) > 0 {
				x.records = append(batch, x.records...)
				x.offer(a)
			}
		})
	}
}

// invoke runs an actor's function. done runs once, after the end.
func (x *explorer) invoke(a *actor, payload []byte, done func(result)) {
	deadline := time.Now().Add(cmp.Or(functionTimeouts[a.function], defaultTimeout))
	x.run(a, done, func() result {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		return x.handle(ctx, a.exploredInstance, payload)
	})
}

// run runs an actor's task.
func (x *explorer) run(a *actor, done func(result), task func() result) {
	finished := false
	finish := func(r result) {
		if finished || x.quiet {
			return
		}
		finished, a.ended = true, true
		r.lost = r.lost || a.Crashed()
		x.world.Logf("%s: ended, lost %v", a.name, r.lost)
		done(r)
	}
	if x.fault("lost before it begins", 1) > 0 {
		finish(result{lost: true})
		return
	}
	a.Start(func() {
		defer func() { finish(result{lost: true}) }()
		finish(task())
	})
}
