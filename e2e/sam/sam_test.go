//go:build linux

package main

import (
	"os"
	"testing"
)

// TestGoldenEvents checks that exactly the functions of the template have golden events.
func TestGoldenEvents(t *testing.T) {
	deployed, err := loadTemplate("../..")
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
		t.Errorf("the golden event of %s has no function in the template", function)
	}
}

// TestCheckOutput checks that an error in the output fails the event.
func TestCheckOutput(t *testing.T) {
	sweep := goldenEvent{wantOutput: "\n{}"}
	for output, good := range map[string]bool{
		"log {}\nREPORT\n{}\n": true, "REPORT {}\n": false, "\n{}\n{\"errorMessage\": 1}": false,
		"\n{}\nFunction timed out": false,
	} {
		if err := sweep.checkOutput(output); (err == nil) != good {
			t.Errorf("%q: %v", output, err)
		}
	}
}
