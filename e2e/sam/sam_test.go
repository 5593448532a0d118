//go:build linux

package main

import (
	"os"
	"testing"

	"mobilegateway/internal/local"
	"mobilegateway/internal/template"
)

// TestGoldens: each function of the template has a golden event, and no other has.
func TestGoldens(t *testing.T) {
	deployed, err := template.Load("../../template.yaml", template.Options{StackName: "local", Region: region, Parameters: local.Parameters()})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, g := range goldenEvents() {
		files[g.function] = g.file
	}
	for _, f := range deployed.Functions {
		if _, err := os.Stat("testdata/" + files[f.LogicalID]); files[f.LogicalID] == "" || err != nil {
			t.Errorf("%s has no golden event: %v", f.LogicalID, err)
		}
		delete(files, f.LogicalID)
	}
	for function := range files {
		t.Errorf("there is no %s", function)
	}
}

func TestCheck(t *testing.T) {
	sweep := goldenEvent{wantOutput: "\n{}"}
	for output, good := range map[string]bool{
		"log {}\nREPORT\n{}\n": true, "REPORT {}\n": false, "\n{}\n{\"errorMessage\": 1}": false, "\n{}\nFunction timed out": false,
	} {
		if err := sweep.checkOutput(output); (err == nil) != good {
			t.Errorf("%q: %v", output, err)
		}
	}
}
