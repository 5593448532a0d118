package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"mobilegateway/internal/file"
	"mobilegateway/world/template"
)

// deployFlags are the build flags of the deployed programs (see the Makefile's build target).
var deployFlags = []string{"-tags=lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid="}

// Build builds the functions' programs for this machine with the deploy flags, as <folder>/<name>/bootstrap. It skips
// the programs whose sources have not changed, because Go links a program without a build id each time. Parallel builds
// of one folder wait for each other. Build calls afterBuild before another build can change the programs.
func Build(
	ctx context.Context, root, folder string, functions []template.Function, afterBuild func() error,
) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the go command is not on the PATH: install Go, see https://go.dev/dl")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	unlock, err := file.Lock(filepath.Join(folder, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	stamp, err := sourceStamp(root)
	if err != nil {
		return err
	}
	builds, ctx := errgroup.WithContext(ctx)
	builds.SetLimit(runtime.NumCPU())
	for _, f := range functions {
		builds.Go(func() error { return buildProgram(ctx, root, filepath.Join(folder, f.Name), f, stamp) })
	}
	if err := builds.Wait(); err != nil { // only the first one: an error in shared code occurs in every function
		return err
	}
	return afterBuild()
}

// linkPrograms links the programs into the run's own folder, so that a later build does not change them. It copies them
// if a hard link is impossible. Only the owner may use them.
func linkPrograms(folder, own string, functions []template.Function) error {
	if err := os.RemoveAll(own); err != nil {
		return err
	}
	for _, f := range functions {
		from, to := filepath.Join(folder, f.Name, "bootstrap"), filepath.Join(own, f.Name, "bootstrap")
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := linkFile(from, to); err != nil {
			return err
		}
		if err := os.Chmod(to, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func linkFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o700)
}

// buildProgram builds one program beside the old one and replaces that.
func buildProgram(ctx context.Context, root, folder string, f template.Function, stamp string) error {
	program, stampPath := filepath.Join(folder, "bootstrap"), filepath.Join(folder, "sources")
	stored, err := os.ReadFile(stampPath)
	if _, missing := os.Stat(program); err == nil && missing == nil && string(stored) == stamp {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	next := program + ".next"
	arguments := append([]string{"build", "-o", next}, deployFlags...)
	command := exec.CommandContext(ctx, "go", append(arguments, "./"+filepath.Clean(f.CodeURI))...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", f.Name, err, bytes.TrimSpace(output))
	}
	if err := os.Rename(next, program); err != nil {
		return err
	}
	return file.Replace(stampPath, []byte(stamp))
}

// sourceStamp is a hash of the programs' sources, the compiler's version and the flags.
func sourceStamp(root string) (string, error) {
	sum := sha256.New()
	fmt.Fprint(sum, runtime.Version(), deployFlags)
	sources := os.DirFS(root)
	for _, part := range []string{"go.mod", "go.sum", "functions", "shared"} {
		err := fs.WalkDir(sources, part, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && entry.Name() == "testdata" {
				return fs.SkipDir
			}
			if !entry.Type().IsRegular() || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			content, err := fs.ReadFile(sources, path)
			fmt.Fprintf(sum, "\n%s %d\n%s", path, len(content), content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read the sources: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
