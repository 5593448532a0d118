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

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/local"
	"mobilegateway/shared/awsclient"
)

// stackName is the deployed stack's.
const stackName = "gateway"

// deployedStack is template.yaml, built and deployed.
type deployedStack struct {
	harness.Workspace
	server     *localStackServer
	parameters map[string]string
	// outputs are the stack's own.
	outputs map[string]string
}

// newStack describes a stack whose API is reached at an address.
func newStack(site harness.Workspace, on *localStackServer, baseURL string) *deployedStack {
	parameters := local.Parameters()
	parameters["BaseUrl"] = baseURL
	parameters["Architecture"] = map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]
	return &deployedStack{Workspace: site, server: on, parameters: parameters}
}

// build makes a bundle as `make build` does, its programs with a build id of their own where one is given.
func (s *deployedStack) build(ctx context.Context, bundle, buildID string) error {
	return harness.Build(ctx, s.Workspace, s.Root, bundle, buildID, s.parameters)
}

// deployTimeout bounds a deployment: of a failed update LocalStack does not roll back, and SAM would wait for ever.
const deployTimeout = 4 * time.Minute

// deploy deploys a bundle and reads the outputs.
func (s *deployedStack) deploy(ctx context.Context, bundle string) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	environment := append(harness.SAMEnvironment(s.Workspace, ""), "SAM_CLI_POLL_DELAY=1")
	for name, value := range s.server.environment() {
		environment = append(environment, name+"="+value)
	}
	arguments := append([]string{
		"deploy", "--template-file", filepath.Join(bundle, "template.yaml"), "--stack-name", stackName, "--s3-bucket", bucket,
		"--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar", "--parameter-overrides",
	}, harness.ParameterOverrides(s.parameters)...)
	if err := harness.Run(ctx, filepath.Join(s.Dir, "deploy.log"), s.Dir, environment, harness.SAMPath(s.Root), arguments...); err != nil {
		return err
	}
	return s.readOutputs(ctx)
}

// readOutputs asks CloudFormation, whose answers are XML.
func (s *deployedStack) readOutputs(ctx context.Context) error {
	query := url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}, "StackName": {stackName}}
	text, err := s.server.call(ctx, "cloudformation", http.MethodPost, "/", "application/x-www-form-urlencoded", []byte(query.Encode()))
	if err != nil {
		return err
	}
	var response struct {
		Outputs []struct{ OutputKey, OutputValue string } `xml:"DescribeStacksResult>Stacks>member>Outputs>member"`
	}
	if err := xml.Unmarshal(text, &response); err != nil {
		return fmt.Errorf("the outputs of the stack: %w", err)
	}
	s.outputs = map[string]string{}
	for _, output := range response.Outputs {
		s.outputs[output.OutputKey] = output.OutputValue
	}
	return nil
}

// maxParallelRequests is how many requests LocalStack works on at once; the rest wait. It is one Python process, and a function's
// call that waits for it longer than two seconds is given up.
const maxParallelRequests = 12

// limitedProxy stands where a custom domain would: what comes to it goes to the deployed stage. LocalStack serves the stage under
// a path of its own.
func (s *deployedStack) limitedProxy() (http.Handler, error) {
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
		Transport: &http.Transport{MaxIdleConnsPerHost: maxParallelRequests, IdleConnTimeout: time.Second},
		// A client that hung up is not worth a line.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	slots := make(chan struct{}, maxParallelRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slots <- struct{}{}
		defer func() { <-slots }()
		proxy.ServeHTTP(w, r)
	}), nil
}

// deployment tells what is to be furnished with secrets and merchants.
func (s *deployedStack) deployment(stubs *harness.Stubs) (local.Deployment, error) {
	environment := s.server.environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	return local.Deployment{
		Client: client, MerchantTable: s.outputs["MerchantTable"], OperatorSecret: s.outputs["OperatorSecret"],
		KeySecrets:    []string{s.outputs["TokenKeySecret"], s.outputs["CallbackKeySecret"], s.outputs["WebhookKeySecret"]},
		WebhookSecret: s.outputs["WebhookKeySecret"],
		BaseURL:       s.parameters["BaseUrl"], SandboxURL: stubs.SandboxURL, InboxURL: stubs.InboxURL,
		SandboxToken: stubs.SandboxToken, Now: time.Now,
	}, err
}

// sortedOutputs is for the log.
func (s *deployedStack) sortedOutputs() []string { return slices.Sorted(maps.Keys(s.outputs)) }
