package explore

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/wiring"
	model "mobilegateway/world/dynamodb"
)

// ports connect one instance with the models, and note what it sees of them.
type ports struct {
	gates
	i *instance
}

// connect connects an instance with the models. Short waits take no time, so that many orders of the same calls lead to
// the same state.
func (x gates) connect(i *instance) wiring.Outside {
	p := &ports{gates: x, i: i}
	c := client{Client: model.NewClient(x.Database), ports: p}
	c.Gate = func(ctx context.Context, call model.Call) model.Decision { return x.tableGate(ctx, i, call) }
	c.Late = func(call model.Call, apply func()) { x.applyLate(i, call, apply) }
	var database wiring.DynamoDB = c
	if x.scope.Bug != nil {
		database = x.scope.Bug(database)
	}
	return wiring.Outside{
		DynamoDB:          func() wiring.DynamoDB { return database },
		SecretSource:      func() secret.Source { return p },
		OpenDynamoDB:      func(context.Context) error { return nil },
		OperatorTransport: transport{p, resourceOperator},
		MerchantTransport: transport{p, resourceMerchant},
		Now:               i.Now,
		Rand:              p,
		Sleep: func(ctx context.Context, wait time.Duration) error {
			if wait < time.Second {
				return ctx.Err()
			}
			return p.sleep(ctx, wait)
		},
		Await: i.Await,
		Start: func(task func()) { i.hasTasks = true; i.Start(task) },
		Log:   p,
	}
}

// sleep lets the instance wait.
func (p *ports) sleep(ctx context.Context, wait time.Duration) error {
	i := p.i
	name := "wait after " + i.seen.last
	err := i.Sleep(ctx, wait)
	p.crashAfter(i, "a wait")
	i.seen.add(i.sightOf(ctx, name), errorDigest(err))
	return err
}

// Read fills buffer with the instance's random values. If its code has started no task, they follow from what it has
// seen.
func (p *ports) Read(buffer []byte) (int, error) {
	i := p.i
	_, _ = i.Read(buffer) // it never fails
	if i.hasTasks {
		i.seen.add(i.seen.last, hashBytes(buffer))
	}
	return len(buffer), nil
}

// Write passes on the log lines of the instance. It drops those of a crashed one.
func (p *ports) Write(line []byte) (int, error) {
	if !p.i.Crashed() {
		p.Observer.Logged(p.i.Name, line)
	}
	return len(line), nil
}

// Fetch implements secret.Source. No actor changes a secret, so no other actor can notice a fetch.
func (p *ports) Fetch(_ context.Context, id string) ([]byte, error) {
	value, found := p.Secrets.Current(id)
	if !found {
		return nil, outside.ErrSecretUnreadable
	}
	return value, nil
}

// transport sends the HTTP requests of an instance.
type transport struct {
	*ports
	resource resources
}

// RoundTrip implements http.RoundTripper. A request that was on its way has its effect also if its sender stalled.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := deployment.ReadBody(request)
	if err = cmp.Or(err, request.Context().Err()); err != nil {
		return nil, err
	}
	i := t.i
	name := deployment.CallOf(request)
	t.gate(request.Context(), i, name, reductions{t.run}.requestAccess(t.resource, request.Method, name))
	response := t.serve(request, body)
	status := uint64(response.Status)<<8 | uint64(response.Failure) //nolint:gosec // both are small
	sight := i.sightOf(request.Context(), name)
	i.seen.add(sight, status, hashBytes(response.Body))
	if request.Method == http.MethodPost {
		t.crashAfter(i, name)
	}
	response.Connect(request)
	if wait := deployment.DelayOf(response); wait > 0 {
		_ = i.Sleep(request.Context(), wait) // Result knows whether the context has ended
		t.crashAfter(i, "the wait for "+name)
	}
	i.seen.add(sight, uint64(time.Now().UnixNano()))
	return response.Result(request)
}

// serve passes a request to the model of its host.
func (t transport) serve(request *http.Request, body []byte) outside.Exchange {
	if server := t.world.Server(request.URL.Host); server != nil {
		return server.Serve(time.Now(), request, body, t.run)
	}
	o := t.world.Operator(request.URL.Host)
	if o == nil {
		t.Fail("a request to the unknown host %s", request.URL.Host)
		return outside.Exchange{Failure: outside.ConnectionRefused}
	}
	t.operator = o
	response := o.Serve(time.Now(), request, body, t.run)
	t.Logf("operator %s: %s: %s", o.Name, deployment.CallOf(request), deployment.Describe(response))
	return response
}

type options = func(*dynamodb.Options)

// client notes what an instance sees of the tables, and offers a crash after each write.
type client struct {
	*model.Client
	ports  *ports
	writes string // names the effect of its next call, "" for none
}

// writing is the client for a call with an effect.
func (c client) writing(name string) client {
	c.writes = name
	return c
}

// see makes a call with a fate, and notes its result.
func see[I, O any](
	ctx context.Context, c client, in *I,
	call func(*model.Client, context.Context, *I, ...options) (*O, error),
) (*O, error) {
	p, i := c.ports, c.ports.i
	made := &tableCall{}
	out, err := call(c.Client, context.WithValue(ctx, tableCallKey{}, made), in)
	digest := uint64(0)
	if err == nil {
		digest = outputDigest(out)
	}
	i.seen.add(i.sightOf(ctx, made.name), uint64(time.Now().UnixNano()), digest, errorDigest(err))
	if c.writes != "" && err == nil {
		p.crashAfter(i, c.writes)
	}
	return out, err
}

// PutItem implements the client's operation.
func (c client) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, _ ...options,
) (*dynamodb.PutItemOutput, error) {
	return see(ctx, c.writing("PutItem "+*in.TableName), in, (*model.Client).PutItem)
}

// GetItem implements the client's operation.
func (c client) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, _ ...options,
) (*dynamodb.GetItemOutput, error) {
	return see(ctx, c, in, (*model.Client).GetItem)
}

// UpdateItem implements the client's operation.
func (c client) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, _ ...options,
) (*dynamodb.UpdateItemOutput, error) {
	return see(ctx, c.writing("UpdateItem "+*in.TableName), in, (*model.Client).UpdateItem)
}

// TransactWriteItems implements the client's operation.
func (c client) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...options,
) (*dynamodb.TransactWriteItemsOutput, error) {
	return see(ctx, c.writing("TransactWriteItems"), in, (*model.Client).TransactWriteItems)
}

// Query implements the client's operation. The actors see an index as it is when they start: a key that is listed too
// late or too early is read again before anything is done to it.
func (c client) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...options) (*dynamodb.QueryOutput, error) {
	return see(ctx, c, in, (*model.Client).Query)
}
