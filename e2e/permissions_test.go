package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mobilegateway/internal/iamcheck"
	"mobilegateway/internal/local/calls"
	"mobilegateway/internal/localtest"
	"mobilegateway/internal/template"
)

// withPermissions runs the tests, and then compares the AWS calls that the functions of all local runs made with
// template.yaml's roles: exactly after the whole suite, else only that each call is allowed. It gives the exit code.
func withPermissions(run func() int) int {
	folder, err := os.MkdirTemp("", "aws-calls-")
	if err != nil {
		return complain(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.Setenv(localtest.CallsVariable, folder); err != nil {
		return complain(err)
	}
	if code := run(); code != 0 || os.Getenv("E2E_RUN_JSON") != "" || flagged("test.list") {
		return code
	}
	faults, err := permissionFaults(folder, !testing.Short() && !flagged("test.run") && !flagged("test.skip"))
	if err != nil {
		return complain(err)
	}
	for _, fault := range faults {
		complain(fault)
	}
	return min(len(faults), 1)
}

// permissionFaults compares all records of a folder with the template.
func permissionFaults(folder string, whole bool) ([]string, error) {
	deployed, err := template.Load(filepath.Join("..", "template.yaml"), template.Options{})
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var made []calls.Call
	for _, name := range files {
		one, err := calls.Read(name)
		if err != nil {
			return nil, err
		}
		made = append(made, one...)
	}
	if whole {
		return iamcheck.Compare(deployed, made), nil
	}
	return iamcheck.Allowed(deployed, made), nil
}

// flagged tells whether a flag of the test binary has a value.
func flagged(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != ""
}

// complain tells why the suite fails though its tests passed.
func complain(what any) int {
	_, _ = fmt.Fprintln(os.Stderr, "permissions:", what)
	return 1
}
