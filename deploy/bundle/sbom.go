package bundle

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// SBOMFile is the name of a bundle's bill of materials, beside the bundle's folder: SAM deploys what is in it.
const SBOMFile = "bundle.cdx.json"

// WriteSBOM writes the CycloneDX bill of materials of the programs in a folder, <function>/bootstrap, to a file. Its
// only source is the record that Go's linker leaves in each program. Equal programs give an equal file.
func WriteSBOM(folder, path string) error {
	programs, err := filepath.Glob(filepath.Join(folder, "*", "bootstrap"))
	if err == nil && len(programs) == 0 {
		err = fmt.Errorf("%s has no program <function>/bootstrap: build the bundle first", folder)
	}
	if err != nil {
		return err
	}
	bom, err := newSBOM(programs)
	if err != nil {
		return fmt.Errorf("list the parts of the bundle: %w", err)
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	err = cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).
		EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return cmp.Or(err, out.Close())
}

func newSBOM(programs []string) (*cyclonedx.BOM, error) {
	bundle := cyclonedx.Component{BOMRef: "bundle", Type: cyclonedx.ComponentTypeApplication, Name: "mobilegateway"}
	parts := map[string]cyclonedx.Component{}
	needs := map[string][]string{}
	for _, path := range programs {
		program, modules, err := readProgram(path)
		if err != nil {
			return nil, err
		}
		parts[program.BOMRef] = program
		needs[bundle.BOMRef] = append(needs[bundle.BOMRef], program.BOMRef)
		for _, module := range modules {
			parts[module.BOMRef] = module
			needs[program.BOMRef] = append(needs[program.BOMRef], module.BOMRef)
		}
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &bundle}
	var components []cyclonedx.Component
	dependencies := []cyclonedx.Dependency{{Ref: bundle.BOMRef, Dependencies: new(needs[bundle.BOMRef])}}
	for _, ref := range slices.Sorted(maps.Keys(parts)) {
		components = append(components, parts[ref])
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: ref, Dependencies: new(needs[ref])})
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	return bom, nil
}

// readProgram returns a program with its hash, and the modules that it links. The standard library is one of them.
func readProgram(path string) (program cyclonedx.Component, modules []cyclonedx.Component, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return program, nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return program, nil, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(content)
	name := filepath.Base(filepath.Dir(path))
	program = cyclonedx.Component{
		BOMRef: "function/" + name, Type: cyclonedx.ComponentTypeApplication, Name: name,
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	modules = append(modules, moduleComponent(debug.Module{Path: "std", Version: version}))
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		modules = append(modules, moduleComponent(*module))
	}
	return program, modules, nil
}

// moduleComponent returns a module. Its package URL is what databases of vulnerabilities know it by.
func moduleComponent(module debug.Module) cyclonedx.Component {
	reference := "pkg:golang/" + module.Path + "@" + module.Version
	component := cyclonedx.Component{
		BOMRef: reference, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version,
		PackageURL: reference,
	}
	if module.Sum != "" { // a hash of the module's files, as in go.sum
		component.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: module.Sum}}
	}
	return component
}
