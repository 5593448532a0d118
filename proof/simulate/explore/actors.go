package explore

import (
	"context"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/wiring"
	model "mobilegateway/world/dynamodb"
)

// stage has the actors of a world.
type stage struct{ gates }

// newInstance makes an instance of a function, "" for a program of a person.
func (x stage) newInstance(function string) *instance {
	i := &instance{Instance: x.Kernel.NewInstance(function), function: function, pending: map[string]access{}}
	i.seen.inOrder = x.scope.Full
	i.parts = wiring.NewDependencies(x.connect(i), x.Environment)
	if function == "" {
		i.Name = "person"
	}
	return i
}

// newActor makes an actor of a kind.
func (x stage) newActor(kind rune, name, function string) *actor {
	a := &actor{name: name, kind: kind, instance: x.newInstance(function)}
	a.enabled = func() bool { return true }
	x.actors = append(x.actors, a)
	x.offer(a)
	return a
}

// offer lets the search start an actor.
func (x stage) offer(a *actor) {
	a.started, a.ended = false, false
	x.Kernel.At(time.Time{}, a.name, func() {
		if x.isQuiet {
			return
		}
		a.started = true
		x.Logf("-- %s", a.name)
		a.start()
	})
}

// addRequest adds a request of the order. The second one starts after the first one, which loses nothing: the requests
// are equal, and what they draw depends on the order in which they start.
func (x stage) addRequest(name string) *actor {
	o := x.order
	a := x.newActor(actorFirst, name, o.Function)
	before := x.lastRequest
	x.lastRequest = a
	a.enabled = func() bool { return x.scope.Full || before == nil || before.started }
	a.start = func() {
		x.requests++
		a.DrawFrom(firstRequest + x.requests)
		x.invoke(a, o.Event(), func(r deployment.Result) {
			response, came := x.ResponseOf(o.Function, r)
			if !came {
				return
			}
			x.Logf("%s: response %d %s", a.name, response.Status, response.MessageID)
			x.world.RespondedAgain(o, response)
			o.Responses = append(o.Responses, response)
		})
	}
	return a
}

// addCallback adds one callback of the operator. A fault of its content adds another one.
func (x stage) addCallback(name string) *actor {
	a := x.newActor(actorCallback, name, deployment.Notif)
	if x.order.Function == deployment.SMS {
		a.instance = x.newInstance(deployment.Receipt)
	}
	a.enabled = func() bool {
		_, soon := x.nextCallback()
		return len(x.callbacks) > 0 || soon
	}
	a.start = func() {
		if next, soon := x.nextCallback(); soon && len(x.callbacks) == 0 {
			x.jumpTo = next
			x.Kernel.At(next, eventContinues, func() { x.sendCallback(a) })
			return
		}
		x.sendCallback(a)
	}
	return a
}

// sendCallback sends one of the callbacks that are due.
func (x stage) sendCallback(a *actor) {
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
		x.Fail("%s", err)
		return
	}
	x.invoke(a, payload, func(r deployment.Result) {
		response, _ := x.ResponseOf(a.function, r)
		x.Logf("callback %s: response %d", callback.Status, response.Status)
		x.world.CalledBack(callback, response.Status)
		x.operator.Report(time.Now(), callback, response.Status)
		if x.moreCallbacks > 0 && !r.Lost { // else the others come in the quiet end
			x.moreCallbacks--
			x.offer(a)
		}
	})
}

// addRelay adds one batch of the stream. A fault makes the stream deliver it again.
func (x stage) addRelay() {
	a := x.newActor(actorRelay, "relay", deployment.Relay)
	a.enabled = func() bool { return len(x.records) > 0 }
	a.start = func() {
		batch := x.records
		x.records = nil
		a.NamesTasks = a.invocations > 0 || len(batch) > 1 // tasks of an earlier batch may not have ended
		x.invoke(a, model.LambdaEvent(batch...), func(r deployment.Result) {
			if r.Lost || r.Err != nil {
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
func (x stage) invoke(a *actor, payload []byte, done func(deployment.Result)) {
	deadline := time.Now().Add(deployment.Timeout(a.function))
	x.perform(a, done, func() deployment.Result {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		return a.handle(ctx, payload)
	})
}

// perform runs an actor's task.
func (x stage) perform(a *actor, done func(deployment.Result), task func() deployment.Result) {
	finished := false
	finish := func(r deployment.Result) {
		if finished || x.isQuiet {
			return
		}
		finished, a.ended = true, true
		r.Lost = r.Lost || a.Crashed()
		x.Logf("%s: ended, lost %v", a.name, r.Lost)
		done(r)
	}
	if x.fault("lost before it begins", 1) > 0 {
		finish(deployment.Result{Lost: true})
		return
	}
	a.Start(func() {
		defer func() { finish(deployment.Result{Lost: true}) }()
		finish(task())
	})
}
