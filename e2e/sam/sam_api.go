//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/world/lambda"
)

// startTimeout is how long SAM may take to start all containers.
const startTimeout = 2 * time.Minute

func (s *suite) startSAMLocal(ctx context.Context, command string, number int, options ...string) (string, error) {
	port, err := harness.FreePort("127.0.0.1")
	if err != nil {
		return "", err
	}
	environment, arguments := s.samLocalCommand(command, append([]string{"--port", port}, options...)...)
	log := filepath.Join(s.Dir, fmt.Sprintf("%s-%d.log", command, number))
	process, err := harness.Start(log, environment, harness.SAMPath(s.Root), arguments...)
	if err != nil {
		return "", err
	}
	address := "http://127.0.0.1:" + port
	return address, process.WaitReady(ctx, startTimeout, address)
}

// containersPerFunction is how many containers a function has that calls operators. SAM starts one, which handles one
// event at a time, and a silent operator blocks it for 12 seconds. So SAM's API is started three times.
const containersPerFunction = 3

// startAPI starts SAM's API several times behind one load balancer. The first starts a container for every function,
// the others start containers when they are needed.
func (s *suite) startAPI(ctx context.Context) error {
	targets := make([]*url.URL, containersPerFunction)
	var starts []func(context.Context) error
	for number := range targets {
		warm := "LAZY"
		if number == 0 {
			warm = "EAGER"
		}
		starts = append(starts, func(ctx context.Context) error {
			address, err := s.startSAMLocal(ctx, "start-api", number, "--warm-containers", warm)
			if err != nil {
				return err
			}
			targets[number], err = url.Parse(address)
			return err
		})
	}
	if err := harness.RunParallel(ctx, starts...); err != nil {
		return err
	}
	if !s.HasOwnNetwork {
		if err := warmUp(ctx, targets); err != nil {
			return err
		}
	}
	harness.Serve(s.listener, newLoadBalancer(targets))
	return nil
}

// warmUpRoutes has one route of each function.
var warmUpRoutes = []string{
	"POST /payment/v1/x/transactions/amount", "POST /mobilemoney/v1", "POST /smsmessaging/v1/outbound/x/requests",
	"POST /token", "POST /callbacks/v1/payments/x/x/x", "POST /callbacks/v1/receipts/x/x/x",
	"GET /mobilemoney/v1/getStatus/x",
}

// warmUp sends each function invalid requests until it refuses one. The machine's engine may accept an event before the
// container listens, and SAM then returns 502.
func warmUp(ctx context.Context, targets []*url.URL) error {
	client := &http.Client{Timeout: startTimeout}
	for _, target := range targets {
		for _, route := range warmUpRoutes {
			method, path, _ := strings.Cut(route, " ")
			err := harness.Poll(ctx, startTimeout, func() error {
				request, err := http.NewRequestWithContext(ctx, method, target.String()+path, strings.NewReader("{}"))
				if err != nil {
					return err
				}
				response, err := client.Do(request)
				if err != nil {
					return err
				}
				if response.StatusCode == http.StatusBadGateway {
					err = fmt.Errorf("SAM returns %d", response.StatusCode)
				}
				return errors.Join(err, response.Body.Close())
			})
			if err != nil {
				return fmt.Errorf("%s: %w", route, err)
			}
		}
	}
	return nil
}

// loadBalancer forwards requests to SAM's APIs so that each container has one request at a time.
type loadBalancer struct {
	apis  []http.Handler
	pools map[string]*containerPool // by poolName
}

// containerPool has the containers of a function, one per API. slots limits the requests to their number.
type containerPool struct {
	slots      chan struct{}
	containers []sync.Mutex
}

func newLoadBalancer(targets []*url.URL) *loadBalancer {
	b := &loadBalancer{pools: map[string]*containerPool{}}
	for _, target := range targets {
		b.apis = append(b.apis, harness.NewProxy(target))
	}
	for name, capacity := range map[string]int{
		"payment": len(targets), "mobilemoney": len(targets), "smsmessaging": len(targets),
		"GET": 1, "payments": 1, "receipts": 1, "token": 1, "": 1,
	} {
		b.pools[name] = &containerPool{slots: make(chan struct{}, capacity), containers: make([]sync.Mutex, capacity)}
	}
	return b
}

// ServeHTTP uses the first free container, so that later containers start only when they are needed.
func (b *loadBalancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pool, found := b.pools[poolName(r)]
	if !found {
		pool = b.pools[""]
	}
	pool.slots <- struct{}{}
	defer func() { <-pool.slots }()
	for number := 0; ; number = (number + 1) % len(pool.containers) { // one is free, or will be at once
		if pool.containers[number].TryLock() {
			defer pool.containers[number].Unlock()
			b.apis[number].ServeHTTP(w, r)
			return
		}
		runtime.Gosched()
	}
}

// poolName identifies the function of a request by its route.
func poolName(r *http.Request) string {
	parts := strings.Split(r.URL.EscapedPath()+"////", "/")
	switch {
	case r.Method == http.MethodGet:
		return "GET"
	case parts[1] == "callbacks":
		return parts[3]
	}
	return parts[1]
}

// lambdaClient invokes a function on `sam local start-lambda`, one event at a time.
type lambdaClient struct {
	address   string
	mu        sync.Mutex
	succeeded atomic.Int64 // invocations without an error
}

// Invoke implements lambda.Invoker.
func (l *lambdaClient) Invoke(ctx context.Context, event lambda.Event) (lambda.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	payload, header, err := harness.Call(ctx, http.MethodPost, l.address, string(event.Payload), nil)
	result := lambda.Result{Payload: payload, FunctionError: header.Get("X-Amz-Function-Error") != ""}
	if err == nil && !result.FunctionError {
		l.succeeded.Add(1)
	}
	return result, err
}

// sweepInterval is the schedule's minute at the stories' speed.
const sweepInterval = time.Second

// startEventSources starts SAM's Lambda and the event sources that SAM lacks: the ledger's stream for the relay, and
// the schedule of the sweep.
func (s *suite) startEventSources(ctx context.Context) error {
	address, err := s.startSAMLocal(ctx, "start-lambda", 0, "--warm-containers", "LAZY")
	if err != nil {
		return err
	}
	event, err := os.ReadFile(filepath.Join(s.Root, "e2e", "sam", "testdata", "sweep.json"))
	if err != nil {
		return err
	}
	s.relay.address = address + "/2015-03-31/functions/RelayFunction/invocations"
	s.sweep.address = address + "/2015-03-31/functions/SweepFunction/invocations"
	go s.pumpStream(ctx)
	go func() {
		for ; ctx.Err() == nil; time.Sleep(sweepInterval) {
			result, err := s.sweep.Invoke(ctx, lambda.Event{Payload: event})
			if (err != nil || result.FunctionError) && ctx.Err() == nil {
				s.Logf("the sweep failed: %v %s", err, result.Payload)
			}
		}
	}()
	return nil
}
