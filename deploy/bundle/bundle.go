// Package bundle checks the programs of a built bundle before it is deployed. It builds nothing. A program that passes
// is a static executable for the template's architecture, built with the flags of the Makefile.
package bundle

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
)

// elfMachines are the processors of the template's architectures.
var elfMachines = map[string]elf.Machine{"arm64": elf.EM_AARCH64, "x86_64": elf.EM_X86_64}

// requiredBuildFlags are the recorded flags of a deployed program. -trimpath hides the linker's flags, so the missing
// symbol table proves those.
var requiredBuildFlags = map[string]string{"-tags": "lambda.norpc", "-trimpath": "true", "CGO_ENABLED": "0"}

// Check checks the program of each function in the folder. SAM itself deploys any file that a build leaves: an archive,
// a program for another processor, or one built with other flags.
func Check(folder string, functions []string, architecture string) error {
	for _, name := range functions {
		if err := checkProgram(filepath.Join(folder, name, "bootstrap"), elfMachines[architecture]); err != nil {
			return fmt.Errorf("the program of %s must not be deployed: %w", name, err)
		}
	}
	return nil
}

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
			return errors.New("it is not statically linked")
		}
	}
	if program.Section(".symtab") != nil {
		return errors.New("it was built without -ldflags=-s")
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
