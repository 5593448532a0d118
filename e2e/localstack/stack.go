//go:build linux

package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"mobilegateway/deploy/samcli"
	"mobilegateway/e2e/harness"
)

const stackName = "gateway"

// deployTimeout bounds a deployment. LocalStack does not roll a failed update back, and SAM would wait forever.
const deployTimeout = 4 * time.Minute

func (s *suite) deploy(ctx context.Context, bundle string) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	environment := append(harness.SAMEnvironment(s.Workspace, ""), "SAM_CLI_POLL_DELAY=1")
	for name, value := range s.server.environment() {
		environment = append(environment, name+"="+value)
	}
	arguments := append([]string{
		"deploy", "--template-file", filepath.Join(bundle, "template.yaml"), "--stack-name", stackName, "--s3-bucket",
		bucket,
		"--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar", "--parameter-overrides",
	}, samcli.ParameterOverrides(s.parameters)...)
	command := harness.Command{Log: filepath.Join(s.Dir, "deploy.log"), Dir: s.Dir, Environment: environment}
	if err := command.Run(ctx, harness.SAMPath(s.Root), arguments...); err != nil {
		return err
	}
	return s.readOutputs(ctx)
}

// readOutputs reads the stack's outputs from CloudFormation, whose responses are XML.
func (s *suite) readOutputs(ctx context.Context) error {
	query := url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}, "StackName": {stackName}}.Encode()
	text, err := s.server.call(ctx, serviceCall{
		service: "cloudformation", method: http.MethodPost, path: "/", body: query,
		contentType: "application/x-www-form-urlencoded",
	})
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
