package main

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mobilegateway/e2e/stage"
)

// checkBundle validates the template and builds it three times: what is built are static programs for arm64, the same
// bytes from another folder, and other bytes after an edit of shared code.
func (r *runner) checkBundle(ctx context.Context) error {
	environment := append(stage.SAMEnvironment(""), "AWS_DEFAULT_REGION=us-east-1")
	if err := stage.Run(ctx, filepath.Join(r.dir, "validate.log"), r.root, environment, stage.SAM(r.root), "validate", "--lint"); err != nil {
		return err
	}
	r.say("sam validate --lint finds nothing")
	first, err := r.build(ctx, r.root, r.bundle())
	if err != nil {
		return err
	}
	r.say("%d static programs for arm64", len(first))
	copied := filepath.Join(r.dir, "checkout")
	for _, part := range []string{"functions", "shared"} {
		if err := os.CopyFS(filepath.Join(copied, part), os.DirFS(filepath.Join(r.root, part))); err != nil {
			return err
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "template.yaml"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	second, err := r.build(ctx, copied, filepath.Join(r.dir, "second-bundle"))
	if err != nil {
		return err
	}
	for name := range first {
		if first[name] != second[name] {
			return fmt.Errorf("%s has other bytes when built again in another folder", name)
		}
	}
	r.say("the same bytes from another folder")
	const edit = "package assembly\n\nfunc init() { println(`edited`) }\n"
	if err := os.WriteFile(filepath.Join(copied, "shared", "assembly", "edited.go"), []byte(edit), 0o600); err != nil {
		return err
	}
	third, err := r.build(ctx, copied, filepath.Join(r.dir, "third-bundle"))
	if err != nil {
		return err
	}
	for name := range first {
		if first[name] == third[name] {
			return fmt.Errorf("%s is the old program after an edit of shared code", name)
		}
	}
	r.say("an edit of shared code is built anew")
	return nil
}

// build builds a checkout and gives the programs' hashes by the functions' names.
func (r *runner) build(ctx context.Context, checkout, bundle string) (map[string][32]byte, error) {
	err := stage.Run(ctx, filepath.Join(r.dir, "build.log"), checkout, stage.SAMEnvironment(""), stage.SAM(r.root), "build", "--parallel", "--build-dir", bundle)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(bundle, "*", "bootstrap"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s holds no programs: %w", bundle, err)
	}
	sums := map[string][32]byte{}
	for _, path := range paths {
		if err := checkProgram(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sums[filepath.Base(filepath.Dir(path))] = sha256.Sum256(content)
	}
	return sums, nil
}

// checkProgram: a package that is no program "builds" into an archive, and one with cgo needs libraries that Lambda lacks.
func checkProgram(path string) error {
	program, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }()
	if program.Machine != elf.EM_AARCH64 || program.Type != elf.ET_EXEC {
		return fmt.Errorf("a %s for %s, want an executable for arm64", program.Type, program.Machine)
	}
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			return errors.New("it is not statically linked")
		}
	}
	return nil
}
