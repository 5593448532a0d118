//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"mobilegateway/e2e/harness"
)

// region is the region that LocalStack simulates.
const region = "us-east-1"

const services = "apigateway,cloudformation,cloudwatch,dynamodb,dynamodbstreams,events,iam,kms,lambda,logs," +
	"s3,secretsmanager,sqs,sts"

type localStackServer struct {
	process *harness.Process
	url     string
}

// startServer starts LocalStack on a free port, with its data below the site's folder. executor is the address of the
// environmentPool that runs its functions.
func startServer(site harness.Workspace, executor string) (*localStackServer, error) {
	root, dir := site.Root, site.Dir
	if err := prepareFolders(root, dir); err != nil {
		return nil, err
	}
	port, err := harness.FreePort("127.0.0.1")
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + port
	environment := append(os.Environ(),
		"PYTHONPATH="+filepath.Join(root, "e2e", "localstack", "executor"), "PYTHONDONTWRITEBYTECODE=1",
		"GATEWAY_EXECUTOR="+executor, "LAMBDA_RUNTIME_EXECUTOR=gateway",
		"FILESYSTEM_ROOT="+filepath.Join(dir, "root"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
		"GATEWAY_LISTEN="+address, "LOCALSTACK_HOST="+address, "SERVICES="+services,
		// No container, no name server, no telemetry, no downloads.
		"LS_LOG=warning", "OVERRIDE_IN_DOCKER=0", "DNS_ADDRESS=0", "DISABLE_EVENTS=1", "SKIP_SSL_CERT_DOWNLOAD=1",
		// How often CloudFormation polls a resource before it pauses for a second each time.
		"CFN_NO_WAIT_ITERATIONS=100",
		"DYNAMODB_IN_MEMORY=1", "PROVIDER_OVERRIDE_DYNAMODB=v2",
		// By default it polls a quiet stream ever more slowly, and notifications would be late.
		"LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.2",
		"LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=0.5",
	)
	python := filepath.Join(harness.ToolsDir(root), "localstack", "bin", "python")
	process, err := harness.Start(filepath.Join(dir, "localstack.log"), environment, python, "-m",
		"localstack.runtime.main")
	if err != nil {
		return nil, err
	}
	return &localStackServer{process: process, url: "http://" + address}, nil
}

// bucket is the upload bucket of `sam deploy`. SAM would create one with a stack of its own and poll it every 15
// seconds.
const bucket = "bundles"

func (s *localStackServer) waitReady(ctx context.Context) error {
	if err := s.process.WaitReady(ctx, time.Minute, s.url+"/_localstack/health"); err != nil {
		return err
	}
	_, err := s.call(ctx, serviceCall{service: "s3", method: http.MethodPut, path: "/" + bucket})
	return err
}

// serviceCall is one request to a service of LocalStack. contentType and body may be "".
type serviceCall struct{ service, method, path, contentType, body string }

// call calls a service of LocalStack, which reads the service's name from the signature but does not verify it.
func (s *localStackServer) call(ctx context.Context, c serviceCall) ([]byte, error) {
	header := http.Header{}
	header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+region+"/"+c.service+
		"/aws4_request, SignedHeaders=host, Signature=0")
	if c.contentType != "" {
		header.Set("Content-Type", c.contentType)
	}
	text, _, err := harness.Call(ctx, c.method, s.url+c.path, c.body, header)
	return text, err
}

// environment returns the AWS settings that lead to LocalStack.
func (s *localStackServer) environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.url, "AWS_REGION": region, "AWS_DEFAULT_REGION": region,
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	}
}

// javaWrapper replaces LocalStack's own Java. It starts the DynamoDB Local that Maven installed, not the jar that
// LocalStack would download.
const javaWrapper = `#!/bin/sh
while [ "$1" != -jar ]; do shift; done
shift 2
exec '%s' -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '%s/*' \
  software.amazon.dynamodb.services.local.main.ServerRunner -disableTelemetry "$@"
`

// prepareFolders creates LocalStack's folders, with Java and DynamoDB Local at LocalStack's paths.
func prepareFolders(root, dir string) error {
	java, err := exec.LookPath("java")
	if err != nil {
		return fmt.Errorf("install Java 17 or newer for DynamoDB Local: %w", err)
	}
	library := filepath.Join(dir, "root", "var", "lib", "localstack", "lib")
	jars := filepath.Join(harness.ToolsDir(root), "dynamodb-local", "lib")
	files := map[string]string{
		filepath.Join(library, "java", "21", "bin", "java"):                fmt.Sprintf(javaWrapper, java, jars),
		filepath.Join(library, "dynamodb-local", "2", "DynamoDBLocal.jar"): "", // marks it as installed
		filepath.Join(dir, "cache", ".keep"):                               "",
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			return err
		}
	}
	return nil
}
