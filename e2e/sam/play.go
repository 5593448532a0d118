package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mobilegateway/e2e/stage"
	"mobilegateway/internal/local"
	"mobilegateway/internal/local/dynamo"
	"mobilegateway/internal/local/secrets"
	"mobilegateway/internal/runtimeapi"
	"mobilegateway/internal/template"
	"mobilegateway/shared/awsclient"
)

// region is where SAM says that the functions are.
const region = "us-east-1"

// scene is what the functions find around them.
type scene struct {
	*runner
	host    string // the engine's address
	gateway string // this host as the containers see it
	// tables and secrets are the addresses of DynamoDB Local and of the local Secrets Manager.
	tables, secrets string
	partners        *stage.Partners
	api             string // where SAM's API will be
	front           net.Listener
	closers         []func()
}

// play sets the scene, plays the stories on `sam local start-api`, and then invokes each function with its golden event.
func (r *runner) play(ctx context.Context, host string, arguments []string) error {
	s := &scene{runner: r, host: host}
	defer func() {
		for i := len(s.closers) - 1; i >= 0; i-- {
			s.closers[i]()
		}
	}()
	if err := s.set(ctx); err != nil {
		return err
	}
	info, err := s.furnish(ctx)
	if err != nil {
		return err
	}
	r.say("tables, secrets, operator and merchants are there")
	stop, err := s.startAPI(ctx)
	if err != nil {
		return err
	}
	r.say("sam local start-api answers")
	runJSON := filepath.Join(r.dir, "run.json")
	if err := stage.WriteRunJSON(runJSON, info); err != nil {
		return err
	}
	arguments = append([]string{"-v", "-run", "^TestGateway$/^stories$"}, arguments...)
	err = stage.Stories(ctx, r.root, "sam", runJSON, "", arguments...)
	stop()
	if err != nil {
		return err
	}
	r.say("the stories are told")
	return s.invokeAll(ctx, info)
}

// set starts what the functions call, on the address that containers reach.
func (s *scene) set(ctx context.Context) (err error) {
	if s.gateway, err = gateway(); err != nil {
		return err
	}
	if s.partners, err = stage.NewPartners(s.dir, s.gateway); err != nil {
		return err
	}
	s.closers = append(s.closers, s.partners.Close)
	store, err := secrets.Open(filepath.Join(s.dir, "secrets.json"), time.Now, runtimeapi.NewRequestID)
	if err != nil {
		return err
	}
	for _, name := range secretNames() {
		if err := store.Put(name, "{}"); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(s.gateway, "0"))
	if err != nil {
		return err
	}
	serving := stage.Serve(listener, store)
	s.closers = append(s.closers, func() { _ = serving.Close() })
	s.secrets = "http://" + listener.Addr().String()
	if err := s.startTables(ctx); err != nil {
		return err
	}
	return importImage(ctx, s.root, s.host, map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.tables, "AWS_ENDPOINT_URL_SECRETS_MANAGER": s.secrets,
		"ALLOW_LOOPBACK": "true", "SPEED": strconv.Itoa(stage.Speed),
	})
}

// startTables starts DynamoDB Local and makes the template's tables.
func (s *scene) startTables(ctx context.Context) error {
	port, err := freePort(s.gateway)
	if err != nil {
		return err
	}
	jars := filepath.Join(stage.Tools(s.root), "dynamodb-local", "lib", "*")
	engine, err := stage.Start(filepath.Join(s.dir, "dynamodb.log"), append(os.Environ(), "DDB_LOCAL_TELEMETRY=0"),
		"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars,
		"software.amazon.dynamodb.services.local.main.ServerRunner", "-inMemory", "-sharedDb", "-disableTelemetry", "-port", port)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, engine.Stop)
	s.tables = "http://" + net.JoinHostPort(s.gateway, port)
	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := engine.Answers(starting, s.tables); err != nil {
		return err
	}
	deployed, err := template.Load(filepath.Join(s.root, "template.yaml"), template.Options{StackName: "local", Region: region, Parameters: local.Parameters()})
	if err != nil {
		return err
	}
	return dynamo.NewClient(s.tables, region, "key", "secret", time.Now).EnsureTables(ctx, deployed.Tables)
}

// secretNames are the secrets as SAM resolves a reference to them: by their logical ids.
func secretNames() []string {
	return []string{"OperatorSecret", "TokenKeySecret", "CallbackKeySecret", "WebhookKeySecret"}
}

// furnish puts the secrets and onboards the merchants.
func (s *scene) furnish(ctx context.Context) (info local.Info, err error) {
	s.front, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return info, err
	}
	environment := map[string]string{
		"AWS_REGION": region, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL_DYNAMODB": s.tables, "AWS_ENDPOINT_URL_SECRETS_MANAGER": s.secrets,
	}
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		return info, err
	}
	info, err = local.Deployment{
		Client: client, MerchantTable: "MerchantTable", OperatorSecret: "OperatorSecret", KeySecrets: secretNames()[1:], WebhookSecret: "WebhookKeySecret",
		BaseURL: "http://" + s.front.Addr().String(), SandboxURL: s.partners.SandboxURL, OperatorURL: s.partners.SandboxURL, InboxURL: s.partners.InboxURL,
		SandboxToken: s.partners.SandboxToken, Now: time.Now,
	}.Furnish(ctx)
	s.partners.Trust(info)
	return info, err
}

// sam is what every `sam local` command has in common.
func (s *scene) sam(command string, arguments ...string) (environment, all []string) {
	parameters := local.Parameters()
	parameters["BaseUrl"] = "http://" + s.front.Addr().String()
	all = append([]string{
		"local", command, "--template-file", filepath.Join(s.bundle(), "template.yaml"), "--skip-pull-image", "--invoke-image", baseImage,
		"--region", region, "--parameter-overrides",
	}, stage.Overrides(parameters)...)
	environment = stage.SAMEnvironment("")
	if s.host != "" {
		environment = append(environment, "DOCKER_HOST="+s.host)
	}
	return environment, append(all, arguments...)
}

// startAPI starts SAM's API and our front before it.
func (s *scene) startAPI(ctx context.Context) (stop func(), err error) {
	port, err := freePort("127.0.0.1")
	if err != nil {
		return nil, err
	}
	s.api = "http://127.0.0.1:" + port
	environment, arguments := s.sam("start-api", "--port", port, "--warm-containers", "EAGER")
	process, err := stage.Start(filepath.Join(s.dir, "start-api.log"), environment, stage.SAM(s.root), arguments...)
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := process.Answers(starting, s.api); err != nil {
		process.Stop()
		return nil, err
	}
	target, err := url.Parse(s.api)
	if err != nil {
		return nil, err
	}
	serving := stage.Serve(s.front, oneAtATime(target))
	return func() { _ = serving.Close(); process.Stop() }, nil
}

// oneAtATime passes requests on, to each function one at a time: SAM has one container a function, which takes no second
// event before it has answered the first. Lambda would start another.
func oneAtATime(target *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// A client that hung up is not worth a line.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	places := map[string]chan struct{}{}
	for _, name := range []string{"GET", "payment", "mobilemoney", "smsmessaging", "payments", "receipts", "token", ""} {
		places[name] = make(chan struct{}, 1)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.EscapedPath()+"////", "/")
		name := parts[1]
		switch {
		case r.Method == http.MethodGet:
			name = "GET"
		case name == "callbacks":
			name = parts[3]
		}
		place, found := places[name]
		if !found {
			place = places[""]
		}
		place <- struct{}{}
		defer func() { <-place }()
		proxy.ServeHTTP(w, r)
	})
}

// invokeAll invokes every function of the template with its golden event, in containers of its own.
func (s *scene) invokeAll(ctx context.Context, info local.Info) error {
	for _, golden := range goldens() {
		event, err := golden.write(s, info)
		if err != nil {
			return err
		}
		log := filepath.Join(s.dir, "invoke-"+golden.function+".log")
		environment, arguments := s.sam("invoke", "--event", event)
		arguments = append(arguments, golden.function)
		if err := stage.Run(ctx, log, s.root, environment, stage.SAM(s.root), arguments...); err != nil {
			return err
		}
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if err := golden.check(string(text)); err != nil { // SAM itself says nothing of a function's error
			return fmt.Errorf("sam local invoke %s: %w\n%s", golden.function, err, text)
		}
		s.say("sam local invoke %s answers %q", golden.function, golden.answer)
	}
	return nil
}

// freePort is a port of an address that nobody listens on now.
func freePort(address string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

// golden is a function's golden event, and what stands in its answer.
type golden struct{ function, file, answer string }

// goldens are all of them, one for each function of the template.
func goldens() []golden {
	return []golden{
		{"ChargeFunction", "charge.json", `"statusCode": 201`},
		{"PayFunction", "pay.json", `"statusCode": 201`},
		{"SmsFunction", "sms.json", `"statusCode": 201`},
		{"StatusFunction", "status.json", `"statusCode": 200`},
		{"TokenFunction", "token.json", `"statusCode": 200`},
		{"NotifFunction", "notif.json", `"statusCode": 404`}, // its token is forged
		{"ReceiptFunction", "receipt.json", `"statusCode": 404`},
		{"RelayFunction", "relay.json", `"batchItemFailures": []`},
		{"SweepFunction", "sweep.json", "\n{}"}, // on a line of its own
	}
}

// write writes the event with the merchant's credentials in place of their names.
func (g golden) write(s *scene, info local.Info) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.root, "e2e", "sam", "testdata", g.file))
	if err != nil {
		return "", err
	}
	values := map[string]string{}
	encoded, err := json.Marshal(info.Shop) //nolint:gosec // G117: the demo merchant's own credentials, for its own events
	if err == nil {
		err = json.Unmarshal(encoded, &values)
	}
	path := filepath.Join(s.dir, g.file)
	content := os.Expand(string(text), func(name string) string { return values[name] })
	return path, errors.Join(err, os.WriteFile(path, []byte(content), 0o600))
}

// check looks for the answer, and for none of the ways in which an invocation fails.
func (g golden) check(output string) error {
	compact := strings.ReplaceAll(strings.ReplaceAll(output, `":`, `": `), `":  `, `": `)
	for _, bad := range []string{`"errorMessage"`, "timed out", "Error: "} {
		if strings.Contains(output, bad) {
			return fmt.Errorf("there is %q in the output", bad)
		}
	}
	if !strings.Contains(compact, g.answer) {
		return fmt.Errorf("there is no %s in the output", g.answer)
	}
	return nil
}
