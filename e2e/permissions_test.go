package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mobilegateway/internal/iamcheck"
	"mobilegateway/internal/local/awscalls"
	"mobilegateway/internal/localtest"
	"mobilegateway/internal/template"
)

// runAndCheckPermissions runs the tests, and then compares the AWS calls that the functions of all local runs made with
// template.yaml's roles: exactly after the whole suite, else only that each call is allowed. It gives the exit code.
func runAndCheckPermissions(run func() int) int {
	folder, err := os.MkdirTemp("", "aws-calls-")
	if err != nil {
		return reportSuiteFailure(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.Setenv(localtest.CallsDirVariable, folder); err != nil {
		return reportSuiteFailure(err)
	}
	if code := run(); code != 0 || os.Getenv("E2E_RUN_JSON") != "" || isFlagSet("test.list") {
		return code
	}
	errs, err := permissionDifferences(folder, !testing.Short() && !isFlagSet("test.run") && !isFlagSet("test.skip"))
	if err != nil {
		return reportSuiteFailure(err)
	}
	for _, difference := range errs {
		reportSuiteFailure(difference)
	}
	return min(len(errs), 1)
}

// permissionDifferences compares all records of a folder with the template.
func permissionDifferences(folder string, whole bool) ([]string, error) {
	deployed, err := template.Load(filepath.Join("..", "template.yaml"), template.Options{})
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var made []awscalls.Call
	for _, name := range files {
		one, err := awscalls.Read(name)
		if err != nil {
			return nil, err
		}
		made = append(made, one...)
	}
	if whole {
		return iamcheck.Compare(deployed, made), nil
	}
	return iamcheck.MissingPermissions(deployed, made), nil
}

// isFlagSet tells whether a flag of the test binary has a value.
func isFlagSet(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != ""
}

// reportSuiteFailure tells why the suite fails though its tests passed.
func reportSuiteFailure(what any) int {
	_, _ = fmt.Fprintln(os.Stderr, "permissions:", what)
	return 1
}
