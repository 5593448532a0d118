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

	"mobilegateway/e2e/stage"
)

// startTimeout is how long SAM may take to start all containers.
const startTimeout = 2 * time.Minute

// newClient makes a client for SAM and for the partners; a function answers within 60 seconds, after its container started.
func newClient() *http.Client { return &http.Client{Timeout: startTimeout} }

// start starts a `sam local` server, waits until it answers, and returns its address.
func (s *scene) start(ctx context.Context, command string, number int, arguments ...string) (string, error) {
	port, err := stage.FreePort("127.0.0.1")
	if err != nil {
		return "", err
	}
	environment, all := s.sam(command, append([]string{"--port", port}, arguments...)...)
	process, err := stage.Start(filepath.Join(s.Dir, fmt.Sprintf("%s-%d.log", command, number)), environment, stage.SAM(s.Root), all...)
	if err != nil {
		return "", err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	address := "http://127.0.0.1:" + port
	return address, process.Answers(starting, address)
}

// containers is how many containers a function has that waits for the operator. SAM gives it one, which takes no second
// event before it has answered the first; where an operator is silent, that is 12 seconds. So SAM's API is started so many
// times.
const containers = 3

// startAPI starts SAM's API, with a container for every function, and again, with containers where they are asked for. Our
// front stands before them all.
func (s *scene) startAPI(ctx context.Context) error {
	targets := make([]*url.URL, containers)
	var starts []func(context.Context) error
	for number := range targets {
		warm := "LAZY"
		if number == 0 {
			warm = "EAGER"
		}
		starts = append(starts, func(ctx context.Context) error {
			address, err := s.start(ctx, "start-api", number, "--warm-containers", warm)
			if err != nil {
				return err
			}
			targets[number], err = url.Parse(address)
			return err
		})
	}
	if err := stage.Together(ctx, starts...); err != nil {
		return err
	}
	if !s.OwnNetwork {
		if err := warmUp(ctx, targets); err != nil {
			return err
		}
	}
	stage.Serve(s.front, newFront(targets))
	return nil
}

// routes are one of each function, with methods.
func routes() []string {
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
		for _, route := range routes() {
			method, path, _ := strings.Cut(route, " ")
			for status := http.StatusBadGateway; status == http.StatusBadGateway; {
				request, err := http.NewRequestWithContext(ctx, method, target.String()+path, strings.NewReader("{}"))
				if err != nil {
					return err
				}
				answer, err := newClient().Do(request)
				if err != nil {
					return fmt.Errorf("%s: %w", route, err)
				}
				_ = answer.Body.Close()
				status = answer.StatusCode
			}
		}
	}
	return nil
}

// front passes requests on, to each container one at a time.
type front struct {
	apis []http.Handler
	// places are, for each function, the containers: whoever has a token may look for a free one.
	places map[string]place
}

// place is where a function's requests go.
type place struct {
	tokens chan struct{}
	free   []chan struct{}
}

func newFront(targets []*url.URL) *front {
	f := &front{places: map[string]place{}}
	for _, target := range targets {
		f.apis = append(f.apis, &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
			// A client that hung up is not worth a line.
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		})
	}
	for name, many := range map[string]int{
		"payment": len(targets), "mobilemoney": len(targets), "smsmessaging": len(targets),
		"GET": 1, "payments": 1, "receipts": 1, "token": 1, "": 1,
	} {
		p := place{tokens: make(chan struct{}, many)}
		for range many {
			p.free = append(p.free, make(chan struct{}, 1))
		}
		f.places[name] = p
	}
	return f
}

// ServeHTTP takes the first container that is free, so that the later ones start where they are needed alone.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, found := f.places[functionOf(r)]
	if !found {
		p = f.places[""]
	}
	p.tokens <- struct{}{}
	defer func() { <-p.tokens }()
	for number := 0; ; number = (number + 1) % len(p.free) { // one is free, or just becoming so
		select {
		case p.free[number] <- struct{}{}:
			defer func() { <-p.free[number] }()
			f.apis[number].ServeHTTP(w, r)
			return
		default:
			runtime.Gosched()
		}
	}
}

// functionOf tells by the route which function a request is for.
func functionOf(r *http.Request) string {
	parts := strings.Split(r.URL.EscapedPath()+"////", "/")
	switch {
	case r.Method == http.MethodGet:
		return "GET"
	case parts[1] == "callbacks":
		return parts[3]
	}
	return parts[1]
}

// lambda is a function on `sam local start-lambda`, in one container as well.
type lambda struct {
	address string
	one     sync.Mutex
}

// Invoke implements dynamo.Invoker.
func (l *lambda) Invoke(ctx context.Context, payload []byte) (result []byte, functionError bool, err error) {
	l.one.Lock()
	defer l.one.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.address, bytes.NewReader(payload))
	if err != nil {
		return nil, false, err
	}
	answer, err := newClient().Do(request)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = answer.Body.Close() }()
	result, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("sam local start-lambda answers %d: %s", answer.StatusCode, result)
	}
	return result, answer.Header.Get("X-Amz-Function-Error") != "", err
}

// sweepEvery is the schedule's minute at the stories' speed.
const sweepEvery = time.Second

// startDeliveries starts SAM's Lambda, and does what SAM does not: it hands the stream's records to the relay, and wakes
// the sweep.
func (s *scene) startDeliveries(ctx context.Context) error {
	address, err := s.start(ctx, "start-lambda", 0, "--warm-containers", "LAZY")
	if err != nil {
		return err
	}
	event, err := os.ReadFile(filepath.Join(s.Root, "e2e", "sam", "testdata", "sweep.json"))
	if err != nil {
		return err
	}
	function := func(name string) *lambda {
		return &lambda{address: address + "/2015-03-31/functions/" + name + "/invocations"}
	}
	go s.pump(ctx, function("RelayFunction"), true)
	go func() {
		for sweep := function("SweepFunction"); ctx.Err() == nil; time.Sleep(sweepEvery) {
			if result, failed, err := sweep.Invoke(ctx, event); (err != nil || failed) && ctx.Err() == nil {
				s.say("the sweep failed: %v %s", err, result)
			}
		}
	}()
	return nil
}
