//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/file"
)

// dataStackSuite is a second gateway, whose data is in a stack of its own. Only the gateway's stack is deleted.
type dataStackSuite struct {
	*suite
	bundle    string
	api       atomic.Pointer[http.Handler] // nil while the gateway's stack does not exist
	callbacks net.Listener                 // where operators send callbacks
	// stopSchedule stops the schedule of the present gateway's stack.
	stopSchedule context.CancelFunc
}

// deleteTimeout bounds the deletion of a stack.
const deleteTimeout = 2 * time.Minute

// runDataStackStory deploys the second gateway, and deletes its stack and deploys it again with payments in flight.
func (s *suite) runDataStackStory(ctx context.Context) error {
	two := &dataStackSuite{bundle: s.bundleDir(), suite: &suite{
		Workspace: s.Workspace, stack: "two", environments: s.environments, server: s.server,
		parameters: maps.Clone(s.parameters),
	}}
	two.Dir = filepath.Join(s.Dir, two.stack)
	if err := two.start(ctx); err != nil {
		return err
	}
	mux := http.NewServeMux()
	for route, hasDomain := range map[string]bool{"POST /domain": true, "POST /no-domain": false} {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			if err := two.deleteAndDeploy(ctx, hasDomain); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	address, err := harness.ListenAndServe("127.0.0.1", mux)
	if err != nil {
		return err
	}
	stories := harness.StorySuite{Target: "localstack", RunJSON: two.runJSONPath(), DeployURL: address}
	return stories.Run(ctx, s.Workspace, "^TestGatewayDeletedWithPaymentsInFlight$", "")
}

// start deploys both stacks, seeds them and opens the API.
func (d *dataStackSuite) start(ctx context.Context) (err error) {
	if err := os.MkdirAll(filepath.Join(d.Dir, "tmp"), 0o700); err != nil {
		return err
	}
	if d.stubs, err = harness.NewStubs(d.Dir, "127.0.0.1"); err != nil {
		return err
	}
	if d.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	d.parameters["BaseUrl"] = "http://" + d.listener.Addr().String()
	harness.Serve(d.listener, d)
	if err := d.openCallbacks(); err != nil {
		return err
	}
	data := d.stack + "-data"
	err = d.deployTemplate(ctx, filepath.Join(d.Root, "deploy", "data.yaml"), data,
		map[string]string{"GatewayStack": d.stack})
	if err != nil {
		return err
	}
	outputs, err := d.server.readOutputs(ctx, data)
	if err != nil {
		return err
	}
	d.parameters["DataStack"], d.parameters["LedgerStreamArn"] = data, outputs["LedgerStreamArn"]
	if err := d.deploy(ctx, d.bundle); err != nil {
		return err
	}
	if err := d.seed(ctx); err != nil {
		return err
	}
	d.Logf("deployed the stacks %s and %s", data, d.stack)
	return errors.Join(d.openAPI(ctx), file.ReplaceJSON(d.runJSONPath(), d.info))
}

// openCallbacks opens another address for the callbacks of new payments. The one before responds no longer.
func (d *dataStackSuite) openCallbacks() (err error) {
	if d.callbacks != nil {
		_ = d.callbacks.Close()
	}
	if d.callbacks, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	d.parameters["CallbackBaseUrl"] = "http://" + d.callbacks.Addr().String()
	harness.Serve(d.callbacks, d)
	return nil
}

// ServeHTTP forwards a request to the API. While there is none it closes the connection, as a name without a target.
func (d *dataStackSuite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api := d.api.Load()
	if api == nil {
		panic(http.ErrAbortHandler)
	}
	(*api).ServeHTTP(w, r)
}

// openAPI forwards requests to the stack that is deployed, and starts its schedule.
func (d *dataStackSuite) openAPI(ctx context.Context) error {
	api, err := d.limitedProxy()
	if err != nil {
		return err
	}
	ctx, d.stopSchedule = context.WithCancel(ctx)
	if err := d.startFastSchedule(ctx); err != nil {
		return err
	}
	d.api.Store(&api)
	return nil
}

// deleteAndDeploy deletes the gateway's stack and deploys it again. Without a domain the new stage has another address
// for callbacks. Merchants keep theirs here, because they would only have to change it.
func (d *dataStackSuite) deleteAndDeploy(ctx context.Context, hasDomain bool) error {
	d.api.Store(nil)
	d.stopSchedule()
	if _, err := d.server.callStack(ctx, "DeleteStack", d.stack); err != nil {
		return err
	}
	err := harness.Poll(ctx, deleteTimeout, func() error {
		text, err := d.server.callStack(ctx, "DescribeStacks", d.stack)
		if err == nil && !strings.Contains(string(text), "DELETE_COMPLETE") {
			return fmt.Errorf("the stack %s is there: %.300s", d.stack, text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if name, err := d.server.deployedFunctionName(ctx, d.stack+"-SweepFunction"); err == nil {
		return fmt.Errorf("the stack %s is deleted, and its function %s is there", d.stack, name)
	}
	d.Logf("deleted the stack %s", d.stack)
	if !hasDomain {
		if err := d.openCallbacks(); err != nil {
			return err
		}
	}
	if err := d.deploy(ctx, d.bundle); err != nil {
		return err
	}
	d.Logf("deployed the stack %s again", d.stack)
	return d.openAPI(ctx)
}
