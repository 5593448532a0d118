//go:build linux

package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"mobilegateway/e2e/stage"
	"mobilegateway/internal/local"
	"mobilegateway/shared/awsclient"
)

// stackName is the deployed stack's.
const stackName = "gateway"

// stack is template.yaml, built and deployed.
type stack struct {
	stage.Site
	server     *server
	parameters map[string]string
	// outputs are the stack's own.
	outputs map[string]string
}

// newStack describes a stack whose API is reached at an address.
func newStack(site stage.Site, on *server, baseURL string) *stack {
	parameters := local.Parameters()
	parameters["BaseUrl"] = baseURL
	parameters["Architecture"] = map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]
	return &stack{Site: site, server: on, parameters: parameters}
}

// build makes a bundle as `make build` does, its programs with a build id of their own where one is given.
func (s *stack) build(ctx context.Context, bundle, buildID string) error {
	return stage.Build(ctx, s.Site, s.Root, bundle, buildID, s.parameters)
}

// deployTimeout bounds a deployment: of a failed update LocalStack does not roll back, and SAM would wait for ever.
const deployTimeout = 4 * time.Minute

// deploy deploys a bundle and reads the outputs.
func (s *stack) deploy(ctx context.Context, bundle string) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	environment := append(stage.SAMEnvironment(s.Site, ""), "SAM_CLI_POLL_DELAY=1")
	for name, value := range s.server.environment() {
		environment = append(environment, name+"="+value)
	}
	arguments := append([]string{
		"deploy", "--template-file", filepath.Join(bundle, "template.yaml"), "--stack-name", stackName, "--s3-bucket", bucket,
		"--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar", "--parameter-overrides",
	}, stage.Overrides(s.parameters)...)
	if err := stage.Run(ctx, filepath.Join(s.Dir, "deploy.log"), s.Dir, environment, stage.SAM(s.Root), arguments...); err != nil {
		return err
	}
	return s.readOutputs(ctx)
}

// readOutputs asks CloudFormation, whose answers are XML.
func (s *stack) readOutputs(ctx context.Context) error {
	query := url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}, "StackName": {stackName}}
	text, err := s.server.call(ctx, "cloudformation", http.MethodPost, "/", "application/x-www-form-urlencoded", []byte(query.Encode()))
	if err != nil {
		return err
	}
	var answer struct {
		Outputs []struct{ OutputKey, OutputValue string } `xml:"DescribeStacksResult>Stacks>member>Outputs>member"`
	}
	if err := xml.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("the outputs of the stack: %w", err)
	}
	s.outputs = map[string]string{}
	for _, output := range answer.Outputs {
		s.outputs[output.OutputKey] = output.OutputValue
	}
	return nil
}

// frontLimit is how many requests LocalStack works on at once; the rest wait. It is one Python process, and a function's
// call that waits for it longer than two seconds is given up.
const frontLimit = 12

// front stands where a custom domain would: what comes to it goes to the deployed stage. LocalStack serves the stage under
// a path of its own.
func (s *stack) front() (http.Handler, error) {
	output, err := url.Parse(s.outputs["BaseUrl"])
	if err != nil {
		return nil, err
	}
	id, _, _ := strings.Cut(output.Host, ".")
	target, err := url.Parse(s.server.url + "/_aws/execute-api/" + id + output.Path)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: frontLimit, IdleConnTimeout: time.Second},
		// A client that hung up is not worth a line.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	places := make(chan struct{}, frontLimit)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		places <- struct{}{}
		defer func() { <-places }()
		proxy.ServeHTTP(w, r)
	}), nil
}

// deployment tells what is to be furnished with secrets and merchants.
func (s *stack) deployment(partners *stage.Partners) (local.Deployment, error) {
	environment := s.server.environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	return local.Deployment{
		Client: client, MerchantTable: s.outputs["MerchantTable"], OperatorSecret: s.outputs["OperatorSecret"],
		KeySecrets:    []string{s.outputs["TokenKeySecret"], s.outputs["CallbackKeySecret"], s.outputs["WebhookKeySecret"]},
		WebhookSecret: s.outputs["WebhookKeySecret"],
		BaseURL:       s.parameters["BaseUrl"], SandboxURL: partners.SandboxURL, OperatorURL: partners.SandboxURL, InboxURL: partners.InboxURL,
		SandboxToken: partners.SandboxToken, Now: time.Now,
	}, err
}

// sortedOutputs is for the log.
func (s *stack) sortedOutputs() []string { return slices.Sorted(maps.Keys(s.outputs)) }
