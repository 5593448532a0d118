package main

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"path/filepath"
)

// elfMachines are the processors of the template's architectures.
var elfMachines = map[string]elf.Machine{"arm64": elf.EM_AARCH64, "x86_64": elf.EM_X86_64}

// requiredBuildFlags are what a deployed program was built with. The linker's are not recorded in one that was built with -trimpath;
// that it has no symbols shows them.
var requiredBuildFlags = map[string]string{"-tags": "lambda.norpc", "-trimpath": "true", "CGO_ENABLED": "0"}

// checkBundle looks at the program of each function: SAM ships whatever a build leaves, be it an archive, a program for
// another processor, or one that was built by other flags.
func checkBundle(bundle string, functions []string, architecture string) error {
	for _, name := range functions {
		if err := checkProgram(filepath.Join(bundle, name, "bootstrap"), elfMachines[architecture]); err != nil {
			return fmt.Errorf("the program of %s is not to be deployed: %w", name, err)
		}
	}
	return nil
}

// checkProgram looks at one.
func checkProgram(path string, machine elf.Machine) error {
	program, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }() // it was only read
	if program.Type != elf.ET_EXEC || program.Machine != machine {
		return fmt.Errorf("it is a %s for %s, not an executable for %s", program.Type, program.Machine, machine)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("it is not statically linked")
		}
	}
	if program.Section(".symtab") != nil {
		return fmt.Errorf("it was built without -ldflags=-s")
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	built := map[string]string{}
	for _, setting := range info.Settings {
		built[setting.Key] = setting.Value
	}
	for name, want := range requiredBuildFlags {
		if built[name] != want {
			return fmt.Errorf("it was built with %s=%q, not %q: use make", name, built[name], want)
		}
	}
	return nil
}
