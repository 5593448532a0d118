//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/repository"
)

// namePrefix begins all names that stand outside of our namespaces.
const namePrefix = "gateway-e2e-"

// resourceName is the name of what a checkout's runs put there.
func resourceName(root string) string {
	sum := sha256.Sum256([]byte(root))
	return namePrefix + hex.EncodeToString(sum[:4])
}

// removeLeftovers removes what no namespace holds: the row for the emulator, the control groups of our own engine's containers, and
// our containers and images in an engine that is another's.
func removeLeftovers(site harness.Workspace) error {
	return errors.Join(removeEmulators(), removeControlGroups(site.Root), removeContainers(site.Root))
}

// The kernel's registry of interpreters for foreign programs, and our row in it: arm64 programs, by the first bytes of
// their ELF header, run by the emulator, which is opened once (F) so that containers need not have it.
const (
	binfmtDir    = "/proc/sys/fs/binfmt_misc"
	arm64Pattern = `:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:` +
		`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:`
)

// emulatorPath is the program that runs others for arm64.
func emulatorPath(root string) string {
	return filepath.Join(engineRoot(root), "usr", "bin", "qemu-aarch64-static")
}

// mountBinfmt mounts the registry, where it is not mounted, in the mounts of this process alone.
func mountBinfmt() error {
	if _, err := os.Stat(filepath.Join(binfmtDir, "register")); err == nil {
		return nil
	}
	if err := syscall.Mount("binfmt_misc", binfmtDir, "binfmt_misc", 0, ""); err != nil {
		return fmt.Errorf("mount binfmt_misc, which needs root: %w", err)
	}
	return nil
}

// registerEmulator lets this machine run programs for arm64, where it is none itself, until the sweeper removes the row.
func registerEmulator(site harness.Workspace) error {
	if runtime.GOARCH == "arm64" {
		return nil
	}
	if err := mountBinfmt(); err != nil {
		return err
	}
	row := ":" + resourceName(site.Root) + arm64Pattern + emulatorPath(site.Root) + ":F"
	if err := os.WriteFile(filepath.Join(binfmtDir, "register"), []byte(row), 0); err != nil {
		return fmt.Errorf("register the emulator: %w", err)
	}
	return nil
}

// removeRow removes a row.
func removeRow(row string) error {
	err := os.WriteFile(row, []byte("-1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeEmulators removes the rows of runs that are over: that of this checkout, whose lock we hold, and those of other
// checkouts that are gone or whose lock is free.
func removeEmulators() error {
	if runtime.GOARCH == "arm64" {
		return nil
	}
	if err := mountBinfmt(); err != nil {
		return err
	}
	rows, err := filepath.Glob(filepath.Join(binfmtDir, namePrefix+"*"))
	for _, row := range rows {
		text, rowErr := os.ReadFile(row)
		if rowErr == nil && !isRowInUse(string(text)) {
			rowErr = removeRow(row)
		}
		err = errors.Join(err, rowErr)
	}
	return err
}

// isRowInUse tells whether another checkout's run is at work with a row: it has its lock.
func isRowInUse(row string) bool {
	_, after, _ := strings.Cut(row, "interpreter ")
	path, _, _ := strings.Cut(after, "\n")
	root, found := strings.CutSuffix(path, "/"+emulatorPath(""))
	own, err := repository.Root()
	if !found || err != nil || root == own {
		return false
	}
	lock, err := os.Open(filepath.Join(root, ".local", "e2e-sam.lock"))
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	return harness.TryLock(lock) != nil
}

// controlGroupsTimeout is how long the processes of a killed run may take to leave their control groups.
const controlGroupsTimeout = 10 * time.Second

// removeControlGroups removes our engine's, in whichever version the machine has them.
func removeControlGroups(root string) error {
	for started := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var remaining []string
		for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			found, err := filepath.Glob(pattern + controlGroup(root))
			if err != nil {
				return err
			}
			remaining = append(remaining, found...)
		}
		if len(remaining) == 0 {
			return nil
		}
		for _, folder := range remaining {
			var groups []string
			_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append(groups, path)
				}
				return nil
			})
			for i := len(groups) - 1; i >= 0; i-- { // a group is removed after those in it
				_ = syscall.Rmdir(groups[i])
			}
		}
		if time.Since(started) > controlGroupsTimeout {
			return fmt.Errorf("control groups are left: %v", remaining)
		}
	}
}

// removeContainers removes containers and images of ours from an engine that ran already. SAM may be removing the same.
func removeContainers(root string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host := os.Getenv("DOCKER_HOST")
	if !engineRunning(ctx, root, host) {
		return nil
	}
	list := func(arguments ...string) ([]string, error) {
		output, err := docker(ctx, root, host, arguments...).Output()
		return strings.Fields(string(output)), err
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		var containers []string
		images, err := list("image", "ls", "--quiet", "--no-trunc", "--filter", "reference="+resourceName(root)+"/*")
		for _, image := range images {
			found, rowErr := list("ps", "--all", "--quiet", "--filter", "ancestor="+image)
			containers, err = append(containers, found...), errors.Join(err, rowErr)
		}
		if err == nil && len(images) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(err, fmt.Errorf("the container engine keeps containers %v and images %v", containers, images))
		}
		if len(containers) > 0 {
			_ = docker(ctx, root, host, append([]string{"rm", "--force"}, containers...)...).Run() // the next look tells
		}
		if len(images) > 0 {
			_ = docker(ctx, root, host, append([]string{"image", "rm", "--force"}, images...)...).Run()
		}
	}
}
