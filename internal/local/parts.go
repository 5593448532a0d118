package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mobilegateway/internal/dynoxide"
	"mobilegateway/internal/local/dynamo"
	"mobilegateway/internal/local/front"
	"mobilegateway/internal/local/inbox"
	"mobilegateway/internal/local/secrets"
	"mobilegateway/internal/runtimeapi"
	"mobilegateway/internal/sandbox"
	"mobilegateway/internal/template"
)

// sweepEvery is how often a scheduled function is invoked here, whatever its schedule says.
const sweepEvery = time.Second

// damaged says what to do about a file that cannot be used.
func damaged(err error) error {
	return fmt.Errorf("%w; begin with empty data: make run RESET=1", err)
}

func (r *Run) readTemplate(context.Context) (err error) {
	r.template, err = loadTemplate(r.config.Root, r.config.tablePrefix(), map[string]string{"BaseUrl": url(r.listeners.api)})
	return err
}

func (r *Run) build(ctx context.Context) error {
	shared := filepath.Join(r.config.Root, ".local", "bin")
	return buildThen(ctx, r.config.Root, shared, r.template.Functions, func() error {
		return link(shared, r.programs(), r.template.Functions)
	})
}

// programs is the folder of this run's programs.
func (r *Run) programs() string {
	return filepath.Join(r.config.Dir, "programs")
}

func (r *Run) startSecrets(context.Context) (err error) {
	r.secrets, err = secrets.Open(r.data("secrets.json"), r.config.Now, runtimeapi.NewRequestID)
	if err != nil {
		return damaged(err)
	}
	r.secretsURL = url(r.listeners.secrets)
	r.serve(r.listeners.secrets, r.calls.Secrets(r.secrets))
	return nil
}

// startDynamoDB starts the embedded engine, or takes the one that was named, and makes the tables.
func (r *Run) startDynamoDB(ctx context.Context) error {
	r.dynamoURL = strings.TrimRight(r.config.DynamoDB, "/")
	if r.dynamoURL == "" {
		engine, err := dynoxide.Start(ctx, r.data("ledger.db"), 0)
		if err != nil && strings.Contains(err.Error(), "database") {
			return damaged(err)
		}
		if err != nil {
			return err
		}
		stopping := make(chan struct{})
		r.onClose(func() {
			close(stopping)
			engine.Stop()
		})
		go r.watchEngine(engine, stopping)
		r.dynamoURL, r.dynamoPID = engine.Endpoint(), engine.PID()
	}
	if err := r.serveTables(); err != nil {
		return err
	}
	accessKey, secretKey := credentials(r.config.Dir)
	r.dynamo = dynamo.NewClient(r.dynamoURL, region, accessKey, secretKey, r.config.Now)
	if r.config.Reset {
		if err := r.dynamo.DeleteTables(ctx, r.template.Tables); err != nil {
			return fmt.Errorf("DynamoDB at %s: %w", r.dynamoURL, err)
		}
	}
	if err := r.dynamo.EnsureTables(ctx, r.template.Tables); err != nil {
		return fmt.Errorf("DynamoDB at %s: %w", r.dynamoURL, err)
	}
	return nil
}

// watchEngine reports an engine that ended by itself.
func (r *Run) watchEngine(engine *dynoxide.Server, stopping <-chan struct{}) {
	<-engine.Exited()
	select {
	case <-stopping:
	default:
		r.fail(errors.New("the database ended by itself: start again; if it ends again, begin with empty data (make run RESET=1)"))
	}
}

func (r *Run) startSandbox(context.Context) (err error) {
	r.sandbox, err = sandbox.New(sandbox.Config{
		Dir: r.data("sandbox"), Tokens: []string{r.info.sandboxToken}, BaseURL: url(r.listeners.sandbox),
		Speed: float64(r.config.Speed), Now: r.config.Now, Steering: r.config.Steering,
	})
	if err != nil {
		return damaged(err)
	}
	r.onClose(func() { _ = r.sandbox.Close() })
	r.serve(r.listeners.sandbox, r.sandbox.Handler())
	return nil
}

func (r *Run) startInbox(context.Context) (err error) {
	r.inbox, err = inbox.Open(r.data("inbox.jsonl"), r.config.Now)
	if err != nil {
		return damaged(err)
	}
	r.onClose(func() { _ = r.inbox.Close() })
	r.serve(r.listeners.inbox, r.inbox.Handler())
	return nil
}

// startFunctions makes the functions; their processes start on first use.
func (r *Run) startFunctions(context.Context) error {
	for _, f := range r.template.Functions {
		out, err := os.Create(filepath.Join(r.config.Dir, "log", f.Name+".log"))
		if err != nil {
			return fmt.Errorf("cannot write the log of %s: %w", f.Name, err)
		}
		r.onClose(func() { _ = out.Close() })
		function := runtimeapi.NewFunction(runtimeapi.Spec{
			Name: f.LogicalID, Bootstrap: filepath.Join(r.programs(), f.Name, "bootstrap"),
			Env: r.functionEnvironment(f), Timeout: f.Timeout, Memory: f.Memory,
			Log: &functionLog{name: f.Name, file: out, console: r.log}, Changed: r.touch,
		})
		r.functions[f.LogicalID] = function
		r.onClose(function.Close)
	}
	return nil
}

func (r *Run) startFront(context.Context) error {
	invokers := map[string]front.Invoker{}
	for id, function := range r.functions {
		invokers[id] = function
	}
	r.serve(r.listeners.api, front.New(front.Config{
		Template: r.template, Functions: invokers, Address: r.listeners.api.Addr().String(), Now: r.config.Now,
		Log: r.log.request,
	}))
	return nil
}

// startPumps starts what invokes functions without a request: the tables' streams and the schedules.
func (r *Run) startPumps(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, f := range r.template.Functions {
		function := r.functions[f.LogicalID]
		for _, stream := range f.Streams {
			table := r.template.Table(stream.Table)
			if table == nil {
				cancel()
				return fmt.Errorf("%s: the stream of %s: there is no such table", f.LogicalID, stream.Table)
			}
			pump := &dynamo.Pump{
				Client: r.dynamo, Table: table.Name, Stream: stream, Function: function,
				Checkpoint: r.data("stream-" + f.Name + ".json"), Now: r.config.Now, Logf: r.log.printf,
			}
			group.Go(func() { pump.Run(ctx) })
		}
		if len(f.Schedules) > 0 {
			group.Go(func() { r.tick(ctx, f, function) })
		}
	}
	r.onClose(func() {
		cancel()
		group.Wait()
	})
	return nil
}

// tick invokes a scheduled function until ctx ends, one invocation at a time.
func (r *Run) tick(ctx context.Context, f template.Function, function *runtimeapi.Function) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		_, functionError, err := function.Invoke(ctx, scheduledEvent(r.config.Now()))
		if ctx.Err() != nil {
			return
		}
		if err != nil || functionError {
			r.log.printf("%s failed; see %s", f.Name, filepath.Join(r.config.Dir, "log", f.Name+".log"))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// scheduledEvent is the event of a schedule.
func scheduledEvent(now time.Time) []byte {
	return fmt.Appendf(nil, `{"version":"0","id":%q,"detail-type":"Scheduled Event","source":"aws.events",`+
		`"account":"000000000000","time":%q,"region":%q,"resources":[],"detail":{}}`,
		runtimeapi.NewRequestID(), now.UTC().Format(time.RFC3339), region)
}
