//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"mobilegateway/deploy/samcli"
	"mobilegateway/e2e/harness"
)

const stackName = "gateway"

// deployTimeout bounds a deployment. LocalStack does not roll a failed update back, and SAM would wait forever.
const deployTimeout = 6 * time.Minute

// notUpdated matches the lines of a built template whose resources LocalStack cannot update. It makes an alias again,
// and the second deployment fails. It leaves the stage with the former deployment of the API, which is then deleted.
var notUpdated = regexp.MustCompile(
	`(?m)^    AutoPublishAlias: live\n    DeploymentPreference:\n(?:      .*\n)+|^      AlwaysDeploy: true\n`)

// deploy deploys a bundle as the gateway's stack, without what LocalStack cannot update, and reads its outputs.
func (s *suite) deploy(ctx context.Context, bundle string) (err error) {
	path := filepath.Join(bundle, "template.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text = notUpdated.ReplaceAll(text, nil)
	if bytes.Contains(text, []byte("AutoPublishAlias")) || bytes.Contains(text, []byte("AlwaysDeploy")) {
		return fmt.Errorf("%s still has aliases or AlwaysDeploy: adapt notUpdated to template.yaml", path)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	if err := s.deployTemplate(ctx, path, s.stack, s.parameters); err != nil {
		return err
	}
	s.outputs, err = s.server.readOutputs(ctx, s.stack)
	return err
}

func (s *suite) deployTemplate(ctx context.Context, path, stack string, parameters map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	environment := append(harness.SAMEnvironment(s.Workspace, ""), "SAM_CLI_POLL_DELAY=1")
	for name, value := range s.server.environment() {
		environment = append(environment, name+"="+value)
	}
	arguments := append([]string{
		"deploy", "--template-file", path, "--stack-name", stack, "--s3-bucket", bucket,
		"--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar", "--parameter-overrides",
	}, samcli.ParameterOverrides(parameters)...)
	command := harness.Command{Log: filepath.Join(s.Dir, "deploy.log"), Dir: s.Dir, Environment: environment}
	return command.Run(ctx, harness.SAMPath(s.Root), arguments...)
}

// callStack does an action of CloudFormation with a stack. The response is XML.
func (s *localStackServer) callStack(ctx context.Context, action, stack string) ([]byte, error) {
	query := url.Values{"Action": {action}, "Version": {"2010-05-15"}, "StackName": {stack}}.Encode()
	return s.call(ctx, serviceCall{
		service: "cloudformation", method: http.MethodPost, path: "/", body: query,
		contentType: "application/x-www-form-urlencoded",
	})
}

// readOutputs reads a stack's outputs.
func (s *localStackServer) readOutputs(ctx context.Context, stack string) (map[string]string, error) {
	text, err := s.callStack(ctx, "DescribeStacks", stack)
	if err != nil {
		return nil, err
	}
	var response struct {
		Outputs []struct{ OutputKey, OutputValue string } `xml:"DescribeStacksResult>Stacks>member>Outputs>member"`
	}
	if err := xml.Unmarshal(text, &response); err != nil {
		return nil, fmt.Errorf("the outputs of the stack %s: %w", stack, err)
	}
	outputs := map[string]string{}
	for _, output := range response.Outputs {
		outputs[output.OutputKey] = output.OutputValue
	}
	return outputs, nil
}

// maxParallelRequests is how many requests LocalStack gets at once; the others wait. LocalStack is one Python process
// and drops a function call that waits for more than two seconds.
const maxParallelRequests = 12

// limitedProxy forwards requests to the deployed stage, as a custom domain does. LocalStack serves the stage under a
// path.
func (s *suite) limitedProxy() (http.Handler, error) {
	output, err := url.Parse(s.outputs["BaseUrl"])
	if err != nil {
		return nil, err
	}
	id, _, _ := strings.Cut(output.Host, ".")
	target, err := url.Parse(s.server.url + "/_aws/execute-api/" + id + output.Path)
	if err != nil {
		return nil, err
	}
	proxy := harness.NewProxy(target)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: maxParallelRequests, IdleConnTimeout: time.Second}
	slots := make(chan struct{}, maxParallelRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slots <- struct{}{}
		defer func() { <-slots }()
		proxy.ServeHTTP(w, r)
	}), nil
}
