package explore

import (
	"context"
	"runtime"
	"time"

	"mobilegateway/functions/relay"
	"mobilegateway/proof/simulate/deployment"
)

// handle handles an invocation: it repeats what is recorded, or runs the function.
func (x *run) handle(ctx context.Context, i *instance, payload []byte) deployment.Result {
	h := newHash()
	h.add(i.calls.begun)
	h.add(uint64(time.Now().UnixNano()))
	h.add(hashBytes(payload))
	i.calls.begun = h.sum
	i.calls.invocations++
	ctx = context.WithValue(ctx, invocationKey{}, i.calls.invocations)
	i.seen.add("invocation", h.sum)
	i.calls.isRepeat = !x.scope.Full && !x.search.isReplay && !x.recorded.isOff[i.Number()]
	x.goOn(i)
	if i.calls.isRepeat {
		return x.repeatInvocation(i)
	}
	if i.handler == nil {
		i.handler = deployment.NewHandler(i.function, i.parts)
	}
	response, err := i.handler.Invoke(ctx, payload)
	end := deployment.Result{Payload: response, Err: err}
	if x.mustRecord(i) {
		x.follow(i).end = &end
	}
	return end
}

// repeatedInvocation repeats what is recorded of an invocation.
type repeatedInvocation struct {
	x     *run
	i     *instance
	tasks int                // that have not ended
	ended chan struct{}      // closed at the end of the invocation, or if none will come
	isEnd bool               // ended is closed
	end   *deployment.Result // nil before the end
}

// repeatInvocation repeats an invocation. It ends the run if the instance comes to a moment that is not recorded.
func (x *run) repeatInvocation(i *instance) deployment.Result {
	r := &repeatedInvocation{x: x, i: i, ended: make(chan struct{})}
	if i.function != deployment.Relay {
		r.goOn()
		if r.tasks == 0 && r.end == nil {
			r.miss()
		}
		<-r.ended
	} else {
		r.spawn(r.goOn)
		timer := time.NewTimer(relay.MaxBatchWait) // the relay leaves its batch then
		defer timer.Stop()
		select {
		case <-r.ended:
		case <-timer.C:
			if r.end == nil {
				r.leave()
			}
		}
	}
	if r.end == nil {
		runtime.Goexit() // the instance has crashed, or the run has ended
	}
	return *r.end
}

// goOn does what follows the present moment, until nothing does.
func (r *repeatedInvocation) goOn() {
	for {
		next := r.x.recorded.after[r.i.moment()]
		if next == nil {
			r.miss()
			return
		}
		for _, line := range next.lines {
			_, _ = r.i.log.Write(line)
		}
		if next.end != nil {
			r.end = next.end
			r.close()
		}
		if len(next.calls) == 0 {
			return
		}
		for _, call := range next.calls[1:] {
			r.spawn(func() {
				call.repeatIn(r.i)
				r.goOn()
			})
		}
		next.calls[0].repeatIn(r.i)
	}
}

// leave ends the invocation, as a timer of its code does. Its tasks continue.
func (r *repeatedInvocation) leave() {
	next := r.x.recorded.after[r.i.moment()]
	if next == nil || next.end == nil {
		r.miss()
	}
	r.end = next.end
}

// miss ends the run, so that it is repeated with the code of the instance.
func (r *repeatedInvocation) miss() {
	if !r.i.Crashed() {
		r.x.recorded.missing, r.x.search.frozen = r.i.Number(), true
	}
	r.close()
	runtime.Goexit()
}

// spawn starts a task.
func (r *repeatedInvocation) spawn(task func()) {
	r.tasks++
	r.i.Start(func() {
		defer func() {
			if r.tasks--; r.tasks == 0 && r.i.Crashed() {
				r.close()
			}
		}()
		task()
	})
}

func (r *repeatedInvocation) close() {
	if !r.isEnd {
		r.isEnd = true
		close(r.ended)
	}
}

// repeatIn makes a recorded call in an instance.
func (c recordedCall) repeatIn(i *instance) {
	ctx := context.WithValue(context.Background(), invocationKey{}, c.invocation)
	ctx = context.WithValue(ctx, taskKey{}, c.task)
	if !c.deadline.IsZero() {
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, c.deadline)
		defer cancel()
	}
	c.repeat(ctx, i)
}
