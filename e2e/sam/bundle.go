//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mobilegateway/deploy/bundle"
	"mobilegateway/e2e/harness"
)

// programHashes are the hashes of a bundle's programs by function.
type programHashes map[string][sha256.Size]byte

func (s *suite) checkBundle(ctx context.Context) (first programHashes, err error) {
	err = harness.RunParallel(ctx,
		func(ctx context.Context) error {
			environment := append(harness.SAMEnvironment(s.Workspace, ""), "AWS_DEFAULT_REGION="+region)
			validate := harness.Command{
				Log: filepath.Join(s.Dir, "validate.log"), Dir: s.Root, Environment: environment,
			}
			err := validate.Run(ctx, harness.SAMPath(s.Root), "validate", "--lint")
			if err == nil {
				s.Logf("sam validate --lint reports nothing")
			}
			return err
		},
		func(ctx context.Context) (err error) {
			first, err = s.buildAndHash(ctx, s.Root, s.bundleDir())
			if err == nil {
				s.Logf("built %d static programs for arm64", len(first))
			}
			return err
		},
	)
	return first, err
}

// checkReproducible builds the bundle twice more: in another folder, where all bytes must be equal, and after an edit
// of shared code, where they must all differ.
func (s *suite) checkReproducible(ctx context.Context, first programHashes) error {
	copied := filepath.Join(s.Dir, "checkout")
	command := harness.Command{Log: copied + ".log", Dir: s.Root}
	err := errors.Join(os.Mkdir(copied, 0o700),
		command.Run(ctx, "cp", "-R", "functions", "shared", "go.mod", "go.sum", "template.yaml", copied))
	if err != nil {
		return err
	}
	second, err := s.buildAndHash(ctx, copied, filepath.Join(s.Dir, "second-bundle"))
	if err != nil {
		return err
	}
	for name := range first {
		if first[name] != second[name] {
			return fmt.Errorf("%s has other bytes when built again in another folder", name)
		}
	}
	s.Logf("a build in another folder has the same bytes")
	const edit = "package wiring\n\nfunc init() { println(`edited`) }\n"
	if err := os.WriteFile(filepath.Join(copied, "shared", "wiring", "edited.go"), []byte(edit), 0o600); err != nil {
		return err
	}
	third, err := s.buildAndHash(ctx, copied, filepath.Join(s.Dir, "third-bundle"))
	if err != nil {
		return err
	}
	for name := range first {
		if first[name] == third[name] {
			return fmt.Errorf("%s is unchanged after an edit of shared code", name)
		}
	}
	s.Logf("an edit of shared code changes every program")
	return nil
}

func (s *suite) buildAndHash(ctx context.Context, checkout, folder string) (programHashes, error) {
	if err := (harness.Bundle{Checkout: checkout, Dir: folder}).Build(ctx, s.Workspace); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*", "bootstrap"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(fmt.Errorf("%s contains no programs", folder), err)
	}
	hashes := programHashes{}
	for _, path := range paths {
		function := filepath.Base(filepath.Dir(path))
		if err := bundle.Check(folder, []string{function}, "arm64"); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		hashes[function] = sha256.Sum256(content)
	}
	return hashes, nil
}
