//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mobilegateway/e2e/harness"
)

// programHashes are the hashes of a bundle's programs by the functions' names.
type programHashes map[string][sha256.Size]byte

// checkBundle validates the template and builds it: what is built are static programs for arm64.
func (r *suiteRunner) checkBundle(ctx context.Context) (first programHashes, err error) {
	err = harness.RunParallel(ctx,
		func(ctx context.Context) error {
			environment := append(harness.SAMEnvironment(r.Workspace, ""), "AWS_DEFAULT_REGION="+region)
			log := filepath.Join(r.Dir, "validate.log")
			if err := harness.Run(ctx, log, r.Root, environment, harness.SAMPath(r.Root), "validate", "--lint"); err != nil {
				return err
			}
			r.logf("sam validate --lint finds nothing")
			return nil
		},
		func(ctx context.Context) (err error) {
			first, err = r.buildAndHash(ctx, r.Root, r.bundleDir())
			if err == nil {
				r.logf("%d static programs for arm64", len(first))
			}
			return err
		},
	)
	return first, err
}

// checkReproducible builds twice more: the same bytes from another folder, and other bytes after an edit of shared code.
func (r *suiteRunner) checkReproducible(ctx context.Context, first programHashes) error {
	copied := filepath.Join(r.Dir, "checkout")
	if err := copySources(r.Root, copied); err != nil {
		return err
	}
	second, err := r.buildAndHash(ctx, copied, filepath.Join(r.Dir, "second-bundle"))
	if err != nil {
		return err
	}
	for name := range first {
		if first[name] != second[name] {
			return fmt.Errorf("%s has other bytes when built again in another folder", name)
		}
	}
	r.logf("the same bytes from another folder")
	const edit = "package assembly\n\nfunc init() { println(`edited`) }\n"
	if err := os.WriteFile(filepath.Join(copied, "shared", "assembly", "edited.go"), []byte(edit), 0o600); err != nil {
		return err
	}
	third, err := r.buildAndHash(ctx, copied, filepath.Join(r.Dir, "third-bundle"))
	if err != nil {
		return err
	}
	for name := range first {
		if first[name] == third[name] {
			return fmt.Errorf("%s is the old program after an edit of shared code", name)
		}
	}
	r.logf("an edit of shared code is built anew")
	return nil
}

// copySources copies what a bundle is made of.
func copySources(root, to string) error {
	for _, part := range []string{"functions", "shared"} {
		if err := os.CopyFS(filepath.Join(to, part), os.DirFS(filepath.Join(root, part))); err != nil {
			return err
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "template.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// buildAndHash builds a checkout and gives its programs' hashes.
func (r *suiteRunner) buildAndHash(ctx context.Context, checkout, bundle string) (programHashes, error) {
	if err := harness.Build(ctx, r.Workspace, checkout, bundle, "", nil); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(bundle, "*", "bootstrap"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(fmt.Errorf("%s holds no programs", bundle), err)
	}
	found := programHashes{}
	for _, path := range paths {
		if err := checkProgram(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found[filepath.Base(filepath.Dir(path))] = sha256.Sum256(content)
	}
	return found, nil
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
