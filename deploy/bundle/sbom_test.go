package bundle_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"

	"mobilegateway/deploy/bundle"
)

// buildFunction builds a function's program into a bundle.
func buildFunction(t *testing.T, folder, name string) {
	t.Helper()
	program := filepath.Join(folder, name, "bootstrap")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", program,
		"../../functions/"+name+"/bootstrap")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

func readSBOM(t *testing.T, path string) (text []byte, bom cyclonedx.BOM) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text, bom
}

// TestSBOMListsWhatIsLinked compares the modules of a program with those that go list finds.
func TestSBOMListsWhatIsLinked(t *testing.T) {
	folder := t.TempDir()
	buildFunction(t, folder, "status")
	path := filepath.Join(folder, bundle.SBOMFile)
	if err := bundle.WriteSBOM(folder, path); err != nil {
		t.Fatal(err)
	}
	text, bom := readSBOM(t, path)
	if bom.SpecVersion != cyclonedx.SpecVersion1_6 || bom.Metadata.Component.Name != "mobilegateway" {
		t.Errorf("it is for %s by %s", bom.Metadata.Component.Name, bom.SpecVersion)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{if .Module}}{{if not .Module.Main}}pkg:golang/{{.Module.Path}}@{{.Module.Version}}{{end}}{{end}}",
		"../../functions/status/bootstrap")
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(output))
	slices.Sort(want)
	want = slices.Compact(want)
	var found []string
	for _, component := range *bom.Components {
		switch {
		case component.Name == "status":
			if len(*component.Hashes) != 1 || len((*component.Hashes)[0].Value) != 64 {
				t.Errorf("the program's hashes are %v", component.Hashes)
			}
		case component.Name == "std":
			if !strings.HasPrefix(component.Version, "1.") {
				t.Errorf("the standard library has the version %q", component.Version)
			}
		case component.Properties == nil || !strings.HasPrefix((*component.Properties)[0].Value, "h1:"):
			t.Errorf("%s has no hash", component.Name)
		default:
			found = append(found, component.PackageURL)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, want) {
		t.Errorf("the modules are %q, want %q", found, want)
	}
	if err := bundle.WriteSBOM(folder, path); err != nil {
		t.Fatal(err)
	}
	if again, _ := readSBOM(t, path); !bytes.Equal(again, text) {
		t.Error("the same programs gave another file")
	}
}

func TestSBOMNeedsPrograms(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, bundle.SBOMFile)
	if err := bundle.WriteSBOM(folder, path); err == nil || !strings.Contains(err.Error(), "build the bundle") {
		t.Errorf("an empty bundle has the error %v", err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "x", "bootstrap"), []byte("#!/bin/sh"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := bundle.WriteSBOM(folder, path); err == nil || !strings.Contains(err.Error(), "bootstrap") {
		t.Errorf("a program without a record has the error %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a bill of materials was written after an error")
	}
}
