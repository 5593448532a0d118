// Package localtest gives tests a running gateway of their own: free ports, a folder that goes with the test, and the
// programs built once for all tests of the checkout.
package localtest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobilegateway/internal/local"
	"mobilegateway/internal/local/awscalls"
	"mobilegateway/internal/repository"
)

// startTimeout bounds a start, the build of the programs included.
const startTimeout = 5 * time.Minute

// CallsDirVariable names, in the environment, a folder where every run leaves the record of its functions' AWS calls when it
// ends, a file each. Where it is not set, none is left.
const CallsDirVariable = "LOCAL_CALLS_DIR"

// Options says what the run is to be. The zero value will do.
type Options struct {
	// Speed divides lifetimes and schedules, as SPEED does. 0 is 1.
	Speed int
	// EnvOverrides overrides variables of the functions.
	EnvOverrides map[string]string
	// Dir keeps the data; "" is a folder that goes with the test. A second run may begin over the same folder once the
	// first is closed.
	Dir string
	// Out gets one line a request; nil: nothing.
	Out io.Writer
}

// Gateway is a running gateway. Info tells addresses and credentials.
type Gateway struct {
	*local.Gateway
	// Dir is the folder with run.json and the data.
	Dir string
}

// Start starts a gateway, and stops it when the test ends. The engine that AWS_ENDPOINT_URL_DYNAMODB names is used
// where it is set. It fails the test where the gateway does not start.
func Start(t testing.TB, options Options) *Gateway {
	t.Helper()
	root, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	if options.Dir == "" {
		options.Dir = filepath.Join(t.TempDir(), "local")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	gateway, err := local.Start(ctx, local.Config{
		Root: root, Dir: options.Dir, Speed: options.Speed,
		DynamoDB: os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), EnvOverrides: options.EnvOverrides, Out: options.Out,
	})
	if err != nil {
		t.Fatalf("start the local run: %v", err)
	}
	t.Cleanup(func() {
		gateway.Close()
		if err := copyCallRecord(filepath.Join(options.Dir, awscalls.FileName)); err != nil {
			t.Error(err)
		}
	})
	return &Gateway{Gateway: gateway, Dir: options.Dir}
}

// copyCallRecord copies a run's record to where CallsDirVariable says.
func copyCallRecord(recordPath string) error {
	folder := os.Getenv(CallsDirVariable)
	if folder == "" {
		return nil
	}
	text, err := os.ReadFile(recordPath)
	if err != nil {
		return err
	}
	copied, err := os.CreateTemp(folder, "*.json")
	if err != nil {
		return err
	}
	_, err = copied.Write(text)
	return errors.Join(err, copied.Close())
}
