package explore

import (
	"context"
	"strconv"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/shared/wiring"
)

// invocationKey is the key of a context's value: the number of the invocation at the instance.
type invocationKey struct{}

// instance is the instance of an actor. seen is what its code has seen. Two instances of an actor that have
// seen the same continue in the same way.
type instance struct {
	*kernel.Instance
	function    string
	handler     wiring.Handler
	parts       *wiring.Dependencies
	seen        seen
	hasTasks    bool              // its code has started one
	pending     map[string]access // the calls that wait to be made
	begun       uint64            // a hash of its payloads and their times
	invocations int               // their number so far
}

// handle runs the function.
func (i *instance) handle(ctx context.Context, payload []byte) deployment.Result {
	h := newHash()
	h.add(i.begun)
	h.add(uint64(time.Now().UnixNano()))
	h.add(hashBytes(payload))
	i.begun = h.sum
	i.invocations++
	i.seen.add("invocation", h.sum)
	if i.handler == nil {
		i.handler = deployment.NewHandler(i.function, i.parts)
	}
	response, err := i.handler.Invoke(context.WithValue(ctx, invocationKey{}, i.invocations), payload)
	return deployment.Result{Payload: response, Err: err}
}

// sightOf is the name under which an instance sees a call of an invocation.
func (i *instance) sightOf(ctx context.Context, name string) string {
	if number, _ := ctx.Value(invocationKey{}).(int); number > 1 {
		name += " of invocation " + strconv.Itoa(number)
	}
	return name + i.TaskName()
}

// firstRequest is added to the number of a request, so that it draws other values than an instance.
const firstRequest = 1000
