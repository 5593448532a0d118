package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mobilegateway/e2e/stage"
)

// region is where LocalStack pretends to be.
const region = "us-east-1"

// services are those of LocalStack that the stack needs.
const services = "apigateway,cloudformation,cloudwatch,dynamodb,dynamodbstreams,events,iam,kms,lambda,logs,s3,secretsmanager,sqs,sts"

// server is a running LocalStack.
type server struct {
	*stage.Process
	url string
}

// startServer starts LocalStack on a free port, with all it writes below dir, and with its functions run by us.
func startServer(ctx context.Context, root, dir, executor string) (*server, error) {
	if err := furnishFolders(root, dir); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	environment := append(os.Environ(),
		"PYTHONPATH="+filepath.Join(root, "e2e", "localstack", "executor"),
		"GATEWAY_EXECUTOR="+executor, "LAMBDA_RUNTIME_EXECUTOR=gateway",
		"FILESYSTEM_ROOT="+filepath.Join(dir, "root"), "TMPDIR="+filepath.Join(dir, "tmp"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
		"GATEWAY_LISTEN="+address, "LOCALSTACK_HOST="+address, "SERVICES="+services,
		// No container around it, no name server of its own, nothing sent home, nothing fetched from elsewhere.
		"LS_LOG=warning", "OVERRIDE_IN_DOCKER=0", "DNS_ADDRESS=0", "DISABLE_EVENTS=1", "SKIP_SSL_CERT_DOWNLOAD=1",
		"DYNAMODB_IN_MEMORY=1", "PROVIDER_OVERRIDE_DYNAMODB=v2",
		// It waits ever longer between looks at a quiet stream; a merchant does not.
		"LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.2", "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=0.5",
	)
	python := filepath.Join(stage.Tools(root), "localstack", "bin", "python")
	process, err := stage.Start(filepath.Join(dir, "localstack.log"), environment, python, "-m", "localstack.runtime.main")
	if err != nil {
		return nil, err
	}
	s := &server{Process: process, url: "http://" + address}
	if err := s.Answers(ctx, s.url+"/_localstack/health"); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// environment is what the AWS command line tools and clients need to take LocalStack for AWS.
func (s *server) environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.url, "AWS_REGION": region, "AWS_DEFAULT_REGION": region,
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	}
}

// javaWrapper stands where LocalStack looks for its own Java. It starts the engine that Maven installed in place of the jar
// that LocalStack would download, and ends it with LocalStack.
const javaWrapper = `#!/bin/sh
while [ "$1" != -jar ]; do shift; done
shift 2
exec setpriv --pdeathsig KILL '%s' -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '%s/*' \
  software.amazon.dynamodb.services.local.main.ServerRunner -disableTelemetry "$@"
`

// furnishFolders makes LocalStack's folders, with Java and DynamoDB Local where it would put them.
func furnishFolders(root, dir string) error {
	java, err := exec.LookPath("java")
	if err != nil {
		return fmt.Errorf("DynamoDB Local needs Java 17 or newer on the PATH: %w", err)
	}
	library := filepath.Join(dir, "root", "var", "lib", "localstack", "lib")
	jars := filepath.Join(stage.Tools(root), "dynamodb-local", "lib")
	files := map[string]string{
		filepath.Join(library, "java", "21", "bin", "java"):                fmt.Sprintf(javaWrapper, java, jars),
		filepath.Join(library, "dynamodb-local", "2", "DynamoDBLocal.jar"): "", // a mark that it is installed
		filepath.Join(dir, "tmp", ".keep"):                                 "",
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

// freeAddress is an address of this host that nobody listens on now.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	return strings.TrimSpace(address), listener.Close()
}
