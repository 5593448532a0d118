//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"mobilegateway/e2e/harness"
)

// startTimeout is how long SAM may take to start all containers.
const startTimeout = 2 * time.Minute

// newClient makes a client for SAM and for the partners; a function answers within 60 seconds, after its container started.
func newClient() *http.Client { return &http.Client{Timeout: startTimeout} }

// startSAMLocal starts a `sam local` server, waits until it answers, and returns its address.
func (s *fixture) startSAMLocal(ctx context.Context, command string, number int, arguments ...string) (string, error) {
	port, err := harness.FreePort("127.0.0.1")
	if err != nil {
		return "", err
	}
	environment, all := s.samLocalCommand(command, append([]string{"--port", port}, arguments...)...)
	process, err := harness.Start(filepath.Join(s.Dir, fmt.Sprintf("%s-%d.log", command, number)), environment, harness.SAMPath(s.Root), all...)
	if err != nil {
		return "", err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	address := "http://127.0.0.1:" + port
	return address, process.WaitReady(starting, address)
}

// containersPerFunction is how many containers a function has that waits for the operator. SAM gives it one, which takes no second
// event before it has answered the first; where an operator is silent, that is 12 seconds. So SAM's API is started so many
// times.
const containersPerFunction = 3

// startAPI starts SAM's API, with a container for every function, and again, with containers where they are asked for. Our
// front stands before them all.
func (s *fixture) startAPI(ctx context.Context) error {
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

// warmUpRoutes are one of each function, with methods.
func warmUpRoutes() []string {
	return []string{
		"POST /payment/v1/x/transactions/amount", "POST /mobilemoney/v1", "POST /smsmessaging/v1/outbound/x/requests", "POST /token",
		"POST /callbacks/v1/payments/x/x/x", "POST /callbacks/v1/receipts/x/x/x", "GET /mobilemoney/v1/getStatus/x",
	}
}

// warmUp asks each function for something that it refuses, until it does: another's engine may accept an event before the
// container listens, and SAM then answers 502.
func warmUp(ctx context.Context, targets []*url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, target := range targets {
		for _, route := range warmUpRoutes() {
			method, path, _ := strings.Cut(route, " ")
			for status := http.StatusBadGateway; status == http.StatusBadGateway; {
				request, err := http.NewRequestWithContext(ctx, method, target.String()+path, strings.NewReader("{}"))
				if err != nil {
					return err
				}
				response, err := newClient().Do(request)
				if err != nil {
					return fmt.Errorf("%s: %w", route, err)
				}
				_ = response.Body.Close()
				status = response.StatusCode
			}
		}
	}
	return nil
}

// loadBalancer passes requests on, to each container one at a time.
type loadBalancer struct {
	apis []http.Handler
	// pools are, for each function, the containers: whoever has a token may look for a free one.
	pools map[string]containerPool
}

// containerPool is where a function's requests go.
type containerPool struct {
	slots      chan struct{}
	containers []chan struct{}
}

func newLoadBalancer(targets []*url.URL) *loadBalancer {
	f := &loadBalancer{pools: map[string]containerPool{}}
	for _, target := range targets {
		f.apis = append(f.apis, &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
			// A client that hung up is not worth a line.
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		})
	}
	for name, capacity := range map[string]int{
		"payment": len(targets), "mobilemoney": len(targets), "smsmessaging": len(targets),
		"GET": 1, "payments": 1, "receipts": 1, "token": 1, "": 1,
	} {
		p := containerPool{slots: make(chan struct{}, capacity)}
		for range capacity {
			p.containers = append(p.containers, make(chan struct{}, 1))
		}
		f.pools[name] = p
	}
	return f
}

// ServeHTTP takes the first container that is free, so that the later ones start where they are needed alone.
func (f *loadBalancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, found := f.pools[poolName(r)]
	if !found {
		p = f.pools[""]
	}
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	for number := 0; ; number = (number + 1) % len(p.containers) { // one is free, or just becoming so
		select {
		case p.containers[number] <- struct{}{}:
			defer func() { <-p.containers[number] }()
			f.apis[number].ServeHTTP(w, r)
			return
		default:
			runtime.Gosched()
		}
	}
}

// poolName tells by the route which function a request is for.
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

// lambdaClient is a function on `sam local start-lambda`, in one container as well.
type lambdaClient struct {
	address string
	mu      sync.Mutex
}

// Invoke implements dynamo.Invoker.
func (l *lambdaClient) Invoke(ctx context.Context, payload []byte) (result []byte, functionError bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.address, bytes.NewReader(payload))
	if err != nil {
		return nil, false, err
	}
	response, err := newClient().Do(request)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = response.Body.Close() }()
	result, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("sam local start-lambda answers %d: %s", response.StatusCode, result)
	}
	return result, response.Header.Get("X-Amz-Function-Error") != "", err
}

// sweepInterval is the schedule's minute at the stories' speed.
const sweepInterval = time.Second

// startEventSources starts SAM's Lambda, and does what SAM does not: it hands the stream's records to the relay, and wakes
// the sweep.
func (s *fixture) startEventSources(ctx context.Context) error {
	address, err := s.startSAMLocal(ctx, "start-lambda", 0, "--warm-containers", "LAZY")
	if err != nil {
		return err
	}
	event, err := os.ReadFile(filepath.Join(s.Root, "e2e", "sam", "testdata", "sweep.json"))
	if err != nil {
		return err
	}
	function := func(name string) *lambdaClient {
		return &lambdaClient{address: address + "/2015-03-31/functions/" + name + "/invocations"}
	}
	go s.pumpStream(ctx, function("RelayFunction"), true)
	go func() {
		for sweep := function("SweepFunction"); ctx.Err() == nil; time.Sleep(sweepInterval) {
			if result, failed, err := sweep.Invoke(ctx, event); (err != nil || failed) && ctx.Err() == nil {
				s.logf("the sweep failed: %v %s", err, result)
			}
		}
	}()
	return nil
}
