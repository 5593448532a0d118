package simulate

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/wiring"
	model "mobilegateway/world/dynamodb"
)

// exploredInstance is the instance of an actor. seen is what its code has seen. Two instances of an actor that have
// seen the same continue in the same way.
type exploredInstance struct {
	*kernel.Instance
	function   string
	handler    wiring.Handler
	parts      *wiring.Dependencies
	client     seeingClient
	log        exploredLog
	transports map[resources]exploredTransport
	seen       seen
	tasks      taskNames
	hasTasks   bool              // its code has started one
	tasksMeet  bool              // the relay has more than one record
	pending    map[string]access // the calls that wait to be made
	calls      calls
}

// newInstance makes an instance of a function, "" for a program of a person.
func (x *explorer) newInstance(function string) *exploredInstance {
	i := &exploredInstance{Instance: x.world.Kernel.NewInstance(function), function: function,
		pending: map[string]access{}, tasks: taskNames{tasks: map[uint64]*namedTask{}}}
	i.drawFrom(uint64(i.Number())) //nolint:gosec // positive
	i.seen.inOrder = x.scope.Full
	i.parts = wiring.NewDependencies(x.outsideOf(i), x.world.environment)
	if function == "" {
		i.Name = "person"
	}
	return i
}

// firstRequest is added to the number of a request, so that it draws other values than an instance.
const firstRequest = 1000

// drawFrom sets where the random values of an instance begin.
func (i *exploredInstance) drawFrom(number uint64) {
	i.DrawFrom(number)
	i.calls.of = number
}

// Read fills buffer with the instance's random values. If its code has started no task, they follow from what it has
// seen.
func (i *exploredInstance) Read(buffer []byte) (int, error) {
	if i.hasTasks {
		i.log.x.record(context.Background(), i, func(_ context.Context, i *exploredInstance) {
			i.hasTasks = true
			_, _ = i.Read(make([]byte, len(buffer)))
		})
	}
	_, _ = i.Instance.Read(buffer) // it never fails
	if i.hasTasks {
		i.seen.add(i.seen.last, hashBytes(buffer))
		i.log.x.goOn(i)
	}
	return len(buffer), nil
}

// outsideOf connects an instance with the models. Short waits take no time, so that many orders of the same calls lead
// to the same state.
func (x *explorer) outsideOf(i *exploredInstance) wiring.Outside {
	client := model.NewClient(x.world.database)
	client.Gate = func(ctx context.Context, call model.Call) model.Decision { return x.tableGate(ctx, i, call) }
	client.Late = func(call model.Call, apply func()) { x.applyLate(i, call, apply) }
	i.client = seeingClient{client, x, i}
	i.log = exploredLog{x, i, logWriter{x.world, &instance{Instance: i.Instance, function: i.function}}}
	i.transports = map[resources]exploredTransport{
		resourceOperator: {x, i, resourceOperator}, resourceMerchant: {x, i, resourceMerchant},
	}
	var database wiring.DynamoDB = i.client
	if x.scope.Bug != nil {
		database = x.scope.Bug(database)
	}
	return wiring.Outside{
		DynamoDB:          func() wiring.DynamoDB { return database },
		SecretSource:      func() secret.Source { return exploredSecrets{x} },
		OpenDynamoDB:      func(context.Context) error { return nil },
		OperatorTransport: i.transports[resourceOperator],
		MerchantTransport: i.transports[resourceMerchant],
		Now:               i.Now,
		Rand:              i,
		Sleep: func(ctx context.Context, wait time.Duration) error {
			if wait < time.Second {
				return ctx.Err()
			}
			return x.sleep(ctx, i, wait)
		},
		Await: func(ctx context.Context, done <-chan struct{}) (err error) {
			i.tasks.park(func() { err = i.Await(ctx, done) })
			return err
		},
		Start: func(task func()) { i.hasTasks = true; i.Start(i.tasks.named(task)) },
		Log:   i.log,
	}
}

// gate parks the calling task before an outside call.
func (x *explorer) gate(ctx context.Context, i *exploredInstance, name string, a access) {
	sight := i.sightOf(ctx, name)
	x.accesses[sight] = a
	i.seen.begin(sight)
	i.pending[sight] = a
	parked := time.Now()
	i.tasks.park(func() { i.Gate(sight) })
	delete(i.pending, sight)
	if !x.scope.Full && time.Now().After(parked) {
		x.crashAfter(i, "a time before "+name)
	}
	x.checkAccess(i, name, a)
	i.seen.add(sight, uint64(time.Now().UnixNano()))
	if x.scope.Full && x.fault("crash before "+name, 1) > 0 {
		x.crash(i, "before "+name)
	}
}

// crash ends the calling task's instance.
func (x *explorer) crash(i *exploredInstance, where string) {
	x.world.Logf("%s: crashes %s", i.Name, where)
	i.Crash()
	i.Exit()
}

// crashAfter offers the crash after a call with an effect, or after a wait. A crash before the next one is the same.
func (x *explorer) crashAfter(i *exploredInstance, name string) {
	if x.fault("crash after "+name, 1) > 0 {
		x.crash(i, "after "+name)
	}
}

// exploredSecrets reads secrets. No actor changes one, so no other actor can notice a fetch.
type exploredSecrets struct{ x *explorer }

// Fetch implements secret.Source.
func (s exploredSecrets) Fetch(_ context.Context, id string) ([]byte, error) {
	value, found := s.x.world.secrets.Current(id)
	if !found {
		return nil, outside.ErrSecretUnreadable
	}
	return value, nil
}

// tableFate is what happens to all attempts of a table's call.
type tableFate int

// The fates. A call whose attempts all fail without effect is one fault, because the SDK repeats single failures.
const (
	fateNormal        tableFate = iota
	fateLost                    // a write: applied, and the response is lost; the SDK sends it again
	fateFailed                  // not applied, and the caller gets an error
	fateAppliedFailed           // a write: applied, and the caller gets an error
	fateLate                    // a write: the caller gets an error, and it is applied later
	fates
)

var fateNames = [...]string{"", "response lost", "fails", "applied, then fails", "fails, applied later"}

// exploredCall is a call of a table: its fate, and its name once it is known.
type exploredCall struct {
	fate tableFate
	name string
}

// exploredCallKey is the context key of a exploredCall.
type exploredCallKey struct{}

// tableGate parks a task before a call of a table and decides its fate. Every attempt comes here.
func (x *explorer) tableGate(ctx context.Context, i *exploredInstance, call model.Call) model.Decision {
	made, counts := ctx.Value(exploredCallKey{}).(*exploredCall)
	if !counts {
		return model.Decision{}
	}
	name := "table " + call.String()
	made.name = name
	if call.Table == merchantTable || call.Operation == "Query" {
		return model.Decision{}
	}
	if call.Attempt == 1 {
		x.gate(ctx, i, name, tableAccess(call))
		made.fate = x.chooseFate(name, call.Writes)
	}
	switch isFirst := call.Attempt == 1; {
	case made.fate == fateNormal:
		return model.Decision{}
	case isFirst && (made.fate == fateLost || made.fate == fateAppliedFailed):
		return model.Decision{Outcome: model.AppliedThenCut}
	case made.fate == fateLost:
		x.gate(ctx, i, name, tableAccess(call))
		return model.Decision{}
	case isFirst && made.fate == fateLate:
		return model.Decision{Outcome: model.AppliedLate}
	}
	return model.Decision{Outcome: model.NotAppliedCut}
}

// chooseFate chooses the fate of a call.
func (x *explorer) chooseFate(name string, writes bool) tableFate {
	var fate tableFate
	if writes {
		fate = tableFate(x.fault("fate of "+name, int(fates)-1))
	} else if x.fault("fate of "+name, 1) > 0 {
		fate = fateFailed
	}
	if fate != fateNormal {
		x.world.Logf("%s: %s", name, fateNames[fate])
	}
	return fate
}

// tableAccess is what a call reads or writes.
func tableAccess(call model.Call) access {
	var all resources
	for _, target := range call.Items {
		kind, _, _ := strings.Cut(target.Key, "#")
		switch {
		case target.Table == limitTable:
			all |= resourceLimit
		case kind == string(ledger.Reference):
			all |= resourceReference
		case kind == "endpoint" || kind == "server":
			all |= resourceHealth
		default:
			all |= resourceEntry
		}
	}
	if call.Writes {
		return access{writes: all}
	}
	return access{reads: all}
}

// lateWrite is a write that is applied later.
type lateWrite struct {
	id     uint64
	access access
}

// applyLate applies a write at any later moment.
func (x *explorer) applyLate(i *exploredInstance, call model.Call, apply func()) {
	name := "late " + call.String()
	late := lateWrite{i.seen.sum + hashBytes([]byte(name)), tableAccess(call)}
	x.late = append(x.late, late)
	x.world.Kernel.At(time.Time{}, name, func() {
		x.late = slices.DeleteFunc(x.late, func(other lateWrite) bool { return other == late })
		x.world.Logf("%s", name)
		apply()
	})
}

// exploredTransport sends the HTTP requests of an instance.
type exploredTransport struct {
	x        *explorer
	instance *exploredInstance
	resource resources
}

// RoundTrip implements http.RoundTripper. A request that was on its way has its effect also if its sender stalled.
func (t exploredTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := readBody(request)
	if err = cmp.Or(err, request.Context().Err()); err != nil {
		return nil, err
	}
	if t.x.mustRecord(t.instance) {
		sent, resource := request.Clone(context.Background()), t.resource // without t, which keeps its world
		t.x.record(request.Context(), t.instance, func(ctx context.Context, i *exploredInstance) {
			again := sent.Clone(ctx)
			again.Body = io.NopCloser(bytes.NewReader(body))
			if response, err := i.transports[resource].RoundTrip(again); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	name := routeCall(request)
	t.x.gate(request.Context(), t.instance, name, t.x.requestAccess(t.resource, request.Method, name))
	response := t.x.serve(request, body)
	status := uint64(response.Status)<<8 | uint64(response.Failure) //nolint:gosec // both are small
	sight := t.instance.sightOf(request.Context(), name)
	t.instance.seen.add(sight, status, hashBytes(response.Body))
	if request.Method == http.MethodPost {
		t.x.crashAfter(t.instance, name)
	}
	if wait := delayOf(response); wait > 0 {
		t.instance.tasks.park(func() {
			_ = t.instance.Sleep(request.Context(), wait) // Result knows whether the context has ended
		})
		t.x.crashAfter(t.instance, "the wait for "+name)
	}
	t.instance.seen.add(sight, uint64(time.Now().UnixNano()))
	t.x.goOn(t.instance)
	return response.Result(request)
}

// serve passes a request to the model of its host.
func (x *explorer) serve(request *http.Request, body []byte) exchange {
	if server := x.world.servers[request.URL.Host]; server != nil {
		return server.Serve(time.Now(), request, body, x)
	}
	o := x.world.operators[request.URL.Host]
	if o == nil {
		x.world.Fail("a request to the unknown host %s", request.URL.Host)
		return exchange{Failure: outside.ConnectionRefused}
	}
	x.operator = o
	response := o.Serve(time.Now(), request, body, x)
	x.world.Logf("operator %s: %s: %s", o.Name, routeCall(request), describe(response))
	return response
}

// errorDigest hashes an error and the items in it.
func errorDigest(err error) uint64 {
	if err == nil {
		return 1
	}
	digest := hashBytes([]byte(err.Error()))
	return digest + conditionItems(err)
}
