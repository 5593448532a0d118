//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"mobilegateway/e2e/harness"
)

// region is where LocalStack pretends to be.
const region = "us-east-1"

// services are those of LocalStack that the stack needs.
const services = "apigateway,cloudformation,cloudwatch,dynamodb,dynamodbstreams,events,iam,kms,lambda,logs,s3,secretsmanager,sqs,sts"

// localStackServer is a running LocalStack.
type localStackServer struct {
	process *harness.Process
	url     string
}

// startServer starts LocalStack on a free port, with all it writes below the site's folder, and with its functions run by
// us.
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
		// No container around it, no name server of its own, nothing sent home, nothing fetched from elsewhere.
		"LS_LOG=warning", "OVERRIDE_IN_DOCKER=0", "DNS_ADDRESS=0", "DISABLE_EVENTS=1", "SKIP_SSL_CERT_DOWNLOAD=1",
		// How often CloudFormation looks at a resource without a pause of a second in between.
		"CFN_NO_WAIT_ITERATIONS=100",
		"DYNAMODB_IN_MEMORY=1", "PROVIDER_OVERRIDE_DYNAMODB=v2",
		// It waits ever longer between looks at a quiet stream; a merchant does not.
		"LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.2", "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=0.5",
	)
	python := filepath.Join(harness.ToolsDir(root), "localstack", "bin", "python")
	process, err := harness.Start(filepath.Join(dir, "localstack.log"), environment, python, "-m", "localstack.runtime.main")
	if err != nil {
		return nil, err
	}
	return &localStackServer{process: process, url: "http://" + address}, nil
}

// bucket is where `sam deploy` uploads to. It would make one by a stack of its own, and look every 15 seconds whether that
// is done.
const bucket = "bundles"

// waitReady waits until LocalStack answers, and makes the bucket.
func (s *localStackServer) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.process.WaitReady(ctx, s.url+"/_localstack/health"); err != nil {
		return err
	}
	_, err := s.call(ctx, "s3", http.MethodPut, "/"+bucket, "", nil)
	return err
}

// call calls a service of LocalStack. It checks no signature, but takes the service's name from it.
func (s *localStackServer) call(ctx context.Context, service, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	client := &http.Client{Timeout: time.Minute} // an invocation is waited for
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s answers %d: %s", service, response.StatusCode, text)
	}
	return text, err
}

// environment is what the AWS command line tools and clients need to take LocalStack for AWS.
func (s *localStackServer) environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.url, "AWS_REGION": region, "AWS_DEFAULT_REGION": region,
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	}
}

// javaWrapper stands where LocalStack looks for its own Java. It starts the engine that Maven installed in place of the jar
// that LocalStack would download.
const javaWrapper = `#!/bin/sh
while [ "$1" != -jar ]; do shift; done
shift 2
exec '%s' -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '%s/*' \
  software.amazon.dynamodb.services.local.main.ServerRunner -disableTelemetry "$@"
`

// prepareFolders makes LocalStack's folders, with Java and DynamoDB Local where it would put them.
func prepareFolders(root, dir string) error {
	java, err := exec.LookPath("java")
	if err != nil {
		return fmt.Errorf("DynamoDB Local needs Java 17 or newer on the PATH: %w", err)
	}
	library := filepath.Join(dir, "root", "var", "lib", "localstack", "lib")
	jars := filepath.Join(harness.ToolsDir(root), "dynamodb-local", "lib")
	files := map[string]string{
		filepath.Join(library, "java", "21", "bin", "java"):                fmt.Sprintf(javaWrapper, java, jars),
		filepath.Join(library, "dynamodb-local", "2", "DynamoDBLocal.jar"): "", // a mark that it is installed
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
