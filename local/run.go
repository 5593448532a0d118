package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"mobilegateway/internal/file"
	"mobilegateway/internal/loopback"
	"mobilegateway/world/awscalls"
	"mobilegateway/world/inbox"
	"mobilegateway/world/lambda"
	"mobilegateway/world/operators/platforms"
	"mobilegateway/world/operators/sandbox"
	"mobilegateway/world/secrets"
	"mobilegateway/world/streams"
	"mobilegateway/world/template"
)

// drainTimeout bounds the wait for open requests at the end.
const drainTimeout = 2 * time.Second

// Gateway is a running gateway.
type Gateway struct {
	config   Config
	template *template.Template
	console  *console
	pages    Console // nil without Config.Console

	listeners    listeners
	recorder     *awscalls.Recorder // nil without Config.RecordCalls
	dynamoURL    string             // of the database itself
	dynamoPID    int                // 0 if the run did not start the database
	dynamoClient *streams.Client
	secrets      *secrets.Store
	sandbox      *sandbox.Sandbox
	inbox        *inbox.Inbox
	stubs        *platforms.Config           // nil without Config.Stubs
	functions    map[string]*lambda.Function // by logical id
	failed       chan error

	info             Info
	sandboxToken     string
	secretKey        string        // of the secrets and tables of this run, in aws.env
	processesChanged chan struct{} // a process started or ended: write run.json again

	closeOnce sync.Once
	closers   []func()
}

type listeners struct{ api, sandbox, inbox, secrets, dynamoProxy, stubs, pages net.Listener }

// Start starts everything and returns when everything responds. ctx bounds only the start; the run ends with Close. An
// error is one line that says what to do, except that of a program that does not compile.
func Start(ctx context.Context, config Config) (*Gateway, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Gateway{
		config: config, functions: map[string]*lambda.Function{}, secretKey: rand.Text(),
		failed: make(chan error, 8), processesChanged: make(chan struct{}, 1),
	}
	r.console = &console{out: r.config.Out}
	steps := []func(context.Context) error{
		r.lockDataDir, r.listen, r.readTemplate, r.build, r.startSecrets, r.startDynamoDB,
		r.startInbox, r.startStubs, r.seed, r.startSandbox, r.startFunctions, r.startAPI, r.startEventSources,
		r.startConsole, r.publishRunFiles,
	}
	for _, step := range steps {
		if err := cmp.Or(step(ctx), ctx.Err()); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// Close stops everything in the reverse order of its start, and returns when all children have ended.
func (r *Gateway) Close() {
	r.closeOnce.Do(func() {
		for _, stop := range slices.Backward(r.closers) {
			stop()
		}
	})
}

// Failed returns a channel that receives an error when an essential part has ended. The caller must close the run then.
func (r *Gateway) Failed() <-chan error { return r.failed }

// RecordedCalls returns the functions' AWS calls so far, in order and each kind once. It needs Config.RecordCalls.
func (r *Gateway) RecordedCalls() []awscalls.Call { return r.recorder.Calls() }

// Info returns the content of run.json.
func (r *Gateway) Info() Info { return r.info }

// DynamoDBURL returns the address of the database itself. Functions and tools use a proxy in front of it, which checks
// signatures. A test with very many calls uses this address to save the proxy's time.
func (r *Gateway) DynamoDBURL() string { return r.dynamoURL }

// Environment returns the variables with which a tool reaches the run's tables, secrets and copies of audit records.
func (r *Gateway) Environment() map[string]string {
	environment := r.awsEnvironment()
	environment["AUDIT_LOG_FILE"] = r.dataPath("audit.jsonl")
	for _, f := range r.template.Functions {
		for name, value := range f.Environment {
			if strings.HasSuffix(name, "_TABLE") || strings.HasSuffix(name, "_SECRET") {
				environment[name] = value
			}
		}
	}
	return environment
}

func (r *Gateway) onClose(f func()) { r.closers = append(r.closers, f) }

// dataPath returns the path of a file that RESET deletes.
func (r *Gateway) dataPath(name string) string { return filepath.Join(r.config.Dir, "data", name) }

// lockDataDir locks the run's folder and deletes its data if Config.Reset is set.
func (r *Gateway) lockDataDir(context.Context) error {
	if err := os.MkdirAll(r.config.Dir, 0o700); err != nil {
		return withFolderHint("make the folder of the data", err)
	}
	unlock, err := file.TryLock(filepath.Join(r.config.Dir, "lock"))
	if errors.Is(err, file.ErrLocked) {
		return fmt.Errorf("another run uses %s: stop it, or set LOCAL_DIR to another folder", r.config.Dir)
	}
	if err != nil {
		return withFolderHint("lock the folder of the data", err)
	}
	r.onClose(unlock)
	r.removeRunFiles() // left by a killed run
	if r.config.Reset {
		if err := os.RemoveAll(filepath.Join(r.config.Dir, "data")); err != nil {
			return fmt.Errorf("cannot delete the data in %s: %w; delete it manually", r.config.Dir, err)
		}
	}
	for _, folder := range []string{"data", "log"} {
		if err := os.MkdirAll(filepath.Join(r.config.Dir, folder), 0o700); err != nil {
			return withFolderHint("make a folder of the data", err)
		}
	}
	return nil
}

// listen opens the ports first, so that a port in use fails the start early.
func (r *Gateway) listen(ctx context.Context) error {
	l := &r.listeners
	all := []*net.Listener{&l.api, &l.sandbox, &l.inbox, &l.secrets, &l.dynamoProxy}
	if r.config.Stubs {
		all = append(all, &l.stubs)
	}
	if r.config.Console != nil {
		if err := r.listenForConsole(ctx); err != nil {
			return err
		}
	}
	for i, to := range all {
		port := 0
		if r.config.Port != 0 && i < 3 { // the first three have fixed ports
			port = r.config.Port + i
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("port %d is in use: stop what listens there, "+
				"or choose another (make run PORT=4000, or PORT=0 for free ones)", port)
		}
		if err != nil {
			return fmt.Errorf("cannot listen on port %d (%w): choose another port (make run PORT=4000)", port, err)
		}
		r.onClose(func() { _ = listener.Close() })
		*to = listener
	}
	return nil
}

// listenForConsole opens the port after the inbox's, or a free one: no program has to know it before the run.
func (r *Gateway) listenForConsole(ctx context.Context) (err error) {
	port := 0
	if r.config.Port != 0 && r.config.Port+3 <= math.MaxUint16 {
		port = r.config.Port + 3
	}
	listen := func(port int) (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	if r.listeners.pages, err = listen(port); errors.Is(err, syscall.EADDRINUSE) {
		r.listeners.pages, err = listen(0)
	}
	if err != nil {
		return fmt.Errorf("cannot listen for the console: %w", err)
	}
	r.onClose(func() { _ = r.listeners.pages.Close() })
	return nil
}

// startConsole serves the console. run.json has an address of its own, which opens one session.
func (r *Gateway) startConsole(context.Context) (err error) {
	if r.config.Console == nil {
		return nil
	}
	_, port, _ := net.SplitHostPort(r.listeners.pages.Addr().String())
	r.pages, err = r.config.Console(ConsolePlace{r.config.Dir, port, listenerURL(r.listeners.sandbox)})
	if err != nil {
		return err
	}
	r.info.ConsoleURL = listenerURL(r.listeners.pages) + r.pages.Opening()
	r.serve(r.listeners.pages, r.pages)
	return nil
}

// serve serves a handler until Close, which waits up to drainTimeout for open requests. It refuses the requests of
// foreign web pages on every port.
func (r *Gateway) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: loopback.Protect(handler), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			offer(r.failed, err)
		}
	}()
	r.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
}

// runUntilClose runs a task in parallel. Close cancels its context and waits for its end.
func (r *Gateway) runUntilClose(task func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { task(ctx) })
	r.onClose(func() {
		cancel()
		group.Wait()
	})
}

// offer sends a value unless the channel is full. Its receiver then has enough to react to.
func offer[T any](channel chan<- T, value T) {
	select {
	case channel <- value:
	default:
	}
}

func listenerURL(listener net.Listener) string { return "http://" + listener.Addr().String() }

// Info is the content of run.json: addresses and credentials for clients.
type Info struct {
	BaseURL string `json:"base_url"`
	MerchantCredentials
	SecondMerchant  MerchantCredentials `json:"second_merchant"`
	LimitedMerchant MerchantCredentials `json:"limited_merchant"`
	InboxURL        string              `json:"inbox_url"`
	SandboxURL      string              `json:"sandbox_url"`
	ConsoleURL      string              `json:"console_url,omitempty"` // only with Config.Console
	StubsURL        string              `json:"stubs_url,omitempty"`   // only with Config.Stubs
	PIDs            PIDs                `json:"pids"`
}

// MerchantCredentials are one merchant's names, credentials and constants.
type MerchantCredentials struct {
	AccessToken   string `json:"access_token"`
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	Merchant      string `json:"merchant"`
	OnBehalfOf    string `json:"on_behalf_of"`
	ServiceID     string `json:"service_id"`
	ApplicationID string `json:"application_id"`
	ContactID     string `json:"contact_id"`
	GWToken       string `json:"gw_token"`
	GWAlias       string `json:"gw_alias"`
	WebhookSecret string `json:"webhook_secret"`
}

// PIDs are the run's process ids. DynamoDB is missing if the run did not start the database.
type PIDs struct {
	Run       int              `json:"run"`
	Functions map[string][]int `json:"functions"`
	DynamoDB  int              `json:"dynamodb,omitempty"`
}

func (r *Gateway) pids() PIDs {
	pids := PIDs{Run: os.Getpid(), Functions: map[string][]int{}, DynamoDB: r.dynamoPID}
	for _, f := range r.template.Functions {
		pids.Functions[f.Name] = r.functions[f.LogicalID].PIDs()
	}
	return pids
}

// runFiles are the files of a run, which end with it. A client waits for run.json, so it is the last one to be written
// and the first one to be removed. env has the same for a shell. With aws.env a shell's tools find the local tables and
// secrets.
var runFiles = []string{"run.json", "env", "aws.env"}

// removeRunFiles deletes the files of a run.
func (r *Gateway) removeRunFiles() {
	for _, name := range runFiles {
		_ = os.Remove(filepath.Join(r.config.Dir, name))
	}
}

// publishRunFiles writes the files of the run, keeps the process ids of run.json up to date, and deletes the files at
// the end.
func (r *Gateway) publishRunFiles(context.Context) error {
	r.info.PIDs = r.pids()
	r.onClose(r.removeRunFiles)
	path := filepath.Join(r.config.Dir, "run.json")
	for name, variables := range map[string]map[string]string{
		"aws.env": r.Environment(), "env": r.info.shellVariables(),
	} {
		if err := file.Replace(filepath.Join(r.config.Dir, name), shellAssignments(variables)); err != nil {
			return err
		}
	}
	if err := r.writeInfo(path); err != nil {
		return err
	}
	r.runUntilClose(func(ctx context.Context) {
		for {
			select {
			case <-r.processesChanged:
				if err := r.writeInfo(path); err != nil {
					r.console.printf("%v", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

func (r *Gateway) writeInfo(path string) error {
	info := r.info
	info.PIDs = r.pids()
	return file.ReplaceJSON(path, info)
}

// shellVariables returns the addresses and credentials by the names that the pages' commands use.
func (i Info) shellVariables() map[string]string {
	variables := map[string]string{
		"BASE": i.BaseURL, "SANDBOX": i.SandboxURL, "INBOX": i.InboxURL,
		"TOKEN": i.AccessToken, "CLIENT_ID": i.ClientID, "CLIENT_SECRET": i.ClientSecret,
		"MERCHANT": i.Merchant, "ON_BEHALF_OF": i.OnBehalfOf, "SERVICE_ID": i.ServiceID,
		"APPLICATION_ID": i.ApplicationID, "CONTACT_ID": i.ContactID, "GW_TOKEN": i.GWToken, "GW_ALIAS": i.GWAlias,
		"WEBHOOK_SECRET": i.WebhookSecret,
	}
	if i.StubsURL != "" {
		variables["STUBS"] = i.StubsURL
	}
	return variables
}

// shellAssignments returns the assignments of variables for a POSIX shell, sorted by name. A shell expands nothing in
// the values.
func shellAssignments(variables map[string]string) []byte {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(variables[name], "'", `'\''`))
	}
	return []byte(text.String())
}
