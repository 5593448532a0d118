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

// StartDynamoDBLocal starts DynamoDB Local, which keeps a database for each access key, all in memory. It returns its address at
// the host given.
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
	startCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return address, engine.WaitReady(startCtx, address)
}

// FreePort is a port of an address that nobody listens on now.
func FreePort(address string) (string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
