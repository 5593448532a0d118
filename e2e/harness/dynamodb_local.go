//go:build linux

package harness

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"
)

// StartDynamoDBLocal starts DynamoDB Local at a host and returns its address. It keeps one database per access key, in
// memory.
func StartDynamoDBLocal(ctx context.Context, site Workspace, host string) (address string, err error) {
	port, err := FreePort(host)
	if err != nil {
		return "", err
	}
	engine, err := Start(filepath.Join(site.Dir, "dynamodb.log"), append(os.Environ(), "DDB_LOCAL_TELEMETRY=0"),
		"java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir="+os.TempDir(),
		"-cp", filepath.Join(ToolsDir(site.Root), "dynamodb-local", "lib", "*"),
		"software.amazon.dynamodb.services.local.main.ServerRunner", "-inMemory", "-disableTelemetry", "-port", port)
	if err != nil {
		return "", err
	}
	address = "http://" + net.JoinHostPort(host, port)
	return address, engine.WaitReady(ctx, time.Minute, address)
}

// FreePort returns a port that is free at an address now.
func FreePort(address string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
