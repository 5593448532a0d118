package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"mobilegateway/internal/file"
	"mobilegateway/world/apigateway"
	"mobilegateway/world/awscalls"
	"mobilegateway/world/dynoxide"
	"mobilegateway/world/inbox"
	"mobilegateway/world/lambda"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/platforms"
	"mobilegateway/world/operators/sandbox"
	"mobilegateway/world/secrets"
	"mobilegateway/world/sigv4"
	"mobilegateway/world/streams"
	"mobilegateway/world/template"
)

// scheduleInterval is how often a scheduled function is invoked in the local run; its schedule is ignored.
const scheduleInterval = time.Second

// withResetHint adds what to do about unusable data.
func withResetHint(err error) error {
	return fmt.Errorf("%w; begin with empty data: make run RESET=1", err)
}

// withFolderHint returns an error about the run's folder with what to do.
func withFolderHint(action string, err error) error {
	return fmt.Errorf("cannot %s (%w): set LOCAL_DIR to a folder that this user may write", action, err)
}

func (r *Gateway) readTemplate(context.Context) (err error) {
	parameters := map[string]string{"BaseUrl": listenerURL(r.listeners.api)}
	r.template, err = loadTemplate(r.config.Root, r.config.tablePrefix(), parameters)
	if err == nil && r.config.RecordCalls {
		r.recorder = r.newRecorder()
	}
	return err
}

// newRecorder returns a recorder that knows the functions by their access keys.
func (r *Gateway) newRecorder() *awscalls.Recorder {
	functions, resources := map[string]string{}, map[string]string{}
	for _, f := range r.template.Functions {
		functions[r.functionAccessKey(f.LogicalID)] = f.LogicalID
	}
	for _, table := range r.template.Tables {
		resources[table.Name] = table.LogicalID
	}
	for _, secret := range r.template.Secrets {
		resources[secret.Name] = secret.LogicalID
	}
	return awscalls.New(functions, resources, r.functionAccessKey(""))
}

func (r *Gateway) build(ctx context.Context) error {
	shared := filepath.Join(r.config.Root, ".local", "bin")
	return Build(ctx, r.config.Root, shared, r.template.Functions, func() error {
		return linkPrograms(shared, r.programsDir(), r.template.Functions)
	})
}

func (r *Gateway) programsDir() string {
	return filepath.Join(r.config.Dir, "programs")
}

func (r *Gateway) startSecrets(context.Context) (err error) {
	r.secrets, err = secrets.Open(r.dataPath("secrets.json"), time.Now, lambda.NewRequestID)
	if err != nil {
		return withResetHint(err)
	}
	for _, secret := range r.template.Secrets {
		if err := r.secrets.Ensure(secret.Name); err != nil {
			return err
		}
	}
	service := http.Handler(r.secrets)
	if r.recorder != nil {
		service = r.recorder.WrapSecretsManager(service)
	}
	r.serve(r.listeners.secrets, sigv4.Require(r.secretKey, service))
	return nil
}

// startDynamoDB starts the embedded database, or uses the configured one, and creates the tables. Functions and tools
// reach it through a proxy. Creating tables and reading streams replaces AWS itself, so these calls go to it directly.
func (r *Gateway) startDynamoDB(ctx context.Context) error {
	r.dynamoURL = strings.TrimRight(r.config.DynamoDB, "/")
	if r.dynamoURL == "" {
		engine, err := dynoxide.Start(ctx, r.dataPath("ledger.db"))
		if err != nil && strings.Contains(err.Error(), "database") {
			return withResetHint(err)
		}
		if err != nil {
			return err
		}
		r.onClose(engine.Stop)
		r.runUntilClose(func(ctx context.Context) { r.watchDynamoDB(ctx, engine) })
		r.dynamoURL, r.dynamoPID = engine.Endpoint(), engine.PID()
	}
	r.dynamoClient = streams.NewClient(r.dynamoURL, region, accessKey(r.config.Dir), databaseSecretKey, time.Now)
	endpoint, err := url.Parse(r.dynamoURL)
	if err == nil {
		service := streams.NewProxy(endpoint)
		if r.recorder != nil {
			service = r.recorder.WrapDynamoDB(service)
		}
		r.serve(r.listeners.dynamoProxy, sigv4.Require(r.secretKey, service))
	}
	if err == nil && r.config.Reset {
		err = r.dynamoClient.DeleteTables(ctx, r.template.Tables)
	}
	if err == nil {
		err = r.dynamoClient.EnsureTables(ctx, r.template.Tables)
	}
	if err != nil {
		return fmt.Errorf("DynamoDB at %s: %w", r.dynamoURL, err)
	}
	return nil
}

// watchDynamoDB reports a database that ended by itself before ctx.
func (r *Gateway) watchDynamoDB(ctx context.Context, engine *dynoxide.Server) {
	select {
	case <-ctx.Done():
	case <-engine.Exited():
		offer(r.failed, errors.New("the database ended by itself: start again; "+
			"if it ends again, begin with empty data (make run RESET=1)"))
	}
}

func (r *Gateway) startSandbox(context.Context) (err error) {
	r.sandbox, err = sandbox.New(sandbox.Config{
		Dir: r.dataPath("sandbox"), Tokens: []string{r.sandboxToken}, BaseURL: listenerURL(r.listeners.sandbox),
		Faults: r.config.FaultPlan, Config: kit.Config{Speed: float64(r.config.Speed)},
	})
	if err != nil {
		return withResetHint(err)
	}
	r.onClose(func() { _ = r.sandbox.Close() })
	r.serve(r.listeners.sandbox, r.sandbox.Handler())
	return nil
}

// startStubs serves the stubs of operators' platforms if Config.Stubs is set. Their state is in memory only, and the
// secret of their callbacks is new in each run.
func (r *Gateway) startStubs(context.Context) error {
	if !r.config.Stubs {
		return nil
	}
	r.stubs = &platforms.Config{
		URL: listenerURL(r.listeners.stubs), GatewayURL: listenerURL(r.listeners.api),
		CallbackSecret: rand.Text() + rand.Text(),
		Kit:            kit.Config{Speed: float64(r.config.Speed), Logf: r.console.printf},
	}
	r.serve(r.listeners.stubs, r.stubs.Handler())
	return nil
}

func (r *Gateway) startInbox(context.Context) (err error) {
	r.inbox, err = inbox.Open(r.dataPath("inbox.jsonl"), time.Now)
	if err != nil {
		return withResetHint(err)
	}
	r.onClose(func() { _ = r.inbox.Close() })
	r.serve(r.listeners.inbox, r.inbox.Handler())
	return nil
}

// startFunctions creates the functions; their processes start on first use.
func (r *Gateway) startFunctions(context.Context) error {
	for _, f := range r.template.Functions {
		out, err := file.Create(filepath.Join(r.config.Dir, "log", f.Name+".log"))
		if err != nil {
			return withFolderHint("write the log of "+f.Name, err)
		}
		r.onClose(func() { _ = out.Close() })
		function := lambda.NewFunction(lambda.Spec{
			Name: f.LogicalID, Bootstrap: filepath.Join(r.programsDir(), f.Name, "bootstrap"),
			Env: r.functionEnvironment(f), Timeout: f.Timeout, Memory: f.MemoryMB, Freezes: r.config.Freeze,
			Log:             &functionLog{name: f.Name, file: out, console: r.console},
			OnProcessChange: func() { offer(r.processesChanged, struct{}{}) },
		})
		r.functions[f.LogicalID] = function
		r.onClose(function.Close)
	}
	return nil
}

func (r *Gateway) startAPI(context.Context) error {
	invokers := map[string]lambda.Invoker{}
	for id, function := range r.functions {
		invokers[id] = function
	}
	r.serve(r.listeners.api, apigateway.New(apigateway.Config{
		Template: r.template, Functions: invokers, Address: r.listeners.api.Addr().String(), Now: time.Now,
		LogRequest: r.console.logRequest,
	}))
	return nil
}

func (r *Gateway) startEventSources(context.Context) error {
	for _, f := range r.template.Functions {
		function := r.functions[f.LogicalID]
		for _, stream := range f.Streams {
			table := r.template.Table(stream.Table)
			if table == nil {
				return fmt.Errorf("%s: the stream of %s: template.yaml has no such table", f.LogicalID, stream.Table)
			}
			pump := &streams.Pump{
				Client: r.dynamoClient, Table: table.Name, Stream: stream, Function: function,
				Checkpoint: r.dataPath("stream-" + f.Name + ".json"), Now: time.Now, Logf: r.console.printf,
			}
			r.runUntilClose(pump.Run)
		}
		if len(f.Schedules) > 0 {
			r.runUntilClose(func(ctx context.Context) { r.invokeOnSchedule(ctx, f, function) })
		}
	}
	return nil
}

// invokeOnSchedule invokes a scheduled function until ctx ends, one invocation at a time.
func (r *Gateway) invokeOnSchedule(ctx context.Context, f template.Function, function *lambda.Function) {
	ticker := time.NewTicker(scheduleInterval)
	defer ticker.Stop()
	for {
		result, err := function.Invoke(ctx, lambda.Event{Payload: scheduledEvent(time.Now())})
		if ctx.Err() != nil {
			return
		}
		if err != nil || result.FunctionError {
			r.console.printf("%s failed: see %s", f.Name, filepath.Join(r.config.Dir, "log", f.Name+".log"))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func scheduledEvent(now time.Time) []byte {
	return fmt.Appendf(nil, `{"version":"0","id":%q,"detail-type":"Scheduled Event","source":"aws.events",`+
		`"account":"000000000000","time":%q,"region":%q,"resources":[],"detail":{}}`,
		lambda.NewRequestID(), now.UTC().Format(time.RFC3339), region)
}
