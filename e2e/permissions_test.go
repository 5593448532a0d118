package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"mobilegateway/internal/file"
	"mobilegateway/proof/iamcheck"
	"mobilegateway/proof/kits/localtest"
	"mobilegateway/world/awscalls"
	"mobilegateway/world/template/roles"
)

// runAndCheckPermissions runs the tests, then requires that template.yaml's roles allow each AWS call of all local
// runs. Package iamcheck also checks that no role allows more. It returns the exit code.
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
	errs, err := missingPermissions(folder)
	if err != nil {
		return reportSuiteFailure(err)
	}
	for _, difference := range errs {
		reportSuiteFailure(difference)
	}
	return min(len(errs), 1)
}

// missingPermissions lists the recorded calls in a folder that the template does not allow.
func missingPermissions(folder string) ([]string, error) {
	deployed, err := roles.Load(filepath.Join("..", "template.yaml"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var made []awscalls.Call
	for _, name := range files {
		var one []awscalls.Call
		if err := file.ReadJSON(name, &one); err != nil {
			return nil, err
		}
		made = append(made, one...)
	}
	return iamcheck.MissingPermissions(deployed, made), nil
}

// isFlagSet reports whether a flag of the test binary has a value.
func isFlagSet(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != ""
}

// reportSuiteFailure prints why the suite fails although its tests passed.
func reportSuiteFailure(what any) int {
	_, _ = fmt.Fprintln(os.Stderr, "permissions:", what)
	return 1
}
