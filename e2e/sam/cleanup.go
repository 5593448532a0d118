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
	"slices"
	"strings"
	"syscall"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/repository"
)

// namePrefix begins the names of all resources outside the namespaces.
const namePrefix = "gateway-e2e-"

// resourceName is the name of a checkout's resources outside the namespaces.
func resourceName(root string) string {
	sum := sha256.Sum256([]byte(root))
	return namePrefix + hex.EncodeToString(sum[:4])
}

// removeLeftovers removes everything outside the namespaces: emulator registrations, control groups of our engine, and
// containers and images in the machine's engine.
func removeLeftovers(site harness.Workspace) error {
	return errors.Join(removeEmulators(), removeControlGroups(site.Root), removeContainers(site.Root))
}

// The kernel's registry of interpreters, and our registration in it: programs with an ELF header for arm64 run in the
// emulator. The flag F opens the emulator once, so that containers need not contain it.
const (
	binfmtDir    = "/proc/sys/fs/binfmt_misc"
	arm64Pattern = `:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:` +
		`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:`
)

// emulatorPath is the program that runs arm64 programs.
func emulatorPath(root string) string {
	return filepath.Join(engineRoot(root), "usr", "bin", "qemu-aarch64-static")
}

// mountBinfmt mounts the registry if it is not mounted, for this process only.
func mountBinfmt() error {
	if _, err := os.Stat(filepath.Join(binfmtDir, "register")); err == nil {
		return nil
	}
	if err := syscall.Mount("binfmt_misc", binfmtDir, "binfmt_misc", 0, ""); err != nil {
		return fmt.Errorf("mount binfmt_misc: %w: start this as root", err)
	}
	return nil
}

// registerEmulator lets this machine run arm64 programs until the sweeper removes the registration.
func registerEmulator(site harness.Workspace) error {
	if runtime.GOARCH == "arm64" {
		return nil
	}
	if err := mountBinfmt(); err != nil {
		return err
	}
	row := ":" + resourceName(site.Root) + arm64Pattern + emulatorPath(site.Root) + ":F"
	if err := os.WriteFile(filepath.Join(binfmtDir, "register"), []byte(row), 0); err != nil {
		return fmt.Errorf("register the arm64 emulator: %w", err)
	}
	return nil
}

// removeEmulators removes the registrations of finished runs: this checkout's, whose lock we have, and those of
// checkouts that are deleted or not locked.
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
			rowErr = os.WriteFile(row, []byte("-1"), 0)
			if errors.Is(rowErr, fs.ErrNotExist) { // another run's sweeper was faster
				rowErr = nil
			}
		}
		err = errors.Join(err, rowErr)
	}
	return err
}

// isRowInUse reports whether a registration belongs to another checkout that has its lock, so that its run is active.
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

// removeControlGroups removes our engine's control groups, of version 1 and 2.
func removeControlGroups(root string) error {
	return harness.Poll(context.Background(), controlGroupsTimeout, func() error {
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
			removeFolders(folder)
		}
		return fmt.Errorf("control groups remain: %v", remaining)
	})
}

// removeFolders removes a tree of empty folders, the innermost first.
func removeFolders(root string) {
	var folders []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, folder := range slices.Backward(folders) {
		_ = syscall.Rmdir(folder)
	}
}

// removeContainers removes our containers and images from the machine's engine. SAM may remove the same ones.
func removeContainers(root string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	machine := engine{root, os.Getenv("DOCKER_HOST")}
	if machine.ping(ctx) != nil {
		return nil
	}
	list := func(arguments ...string) ([]string, error) {
		output, err := machine.docker(ctx, arguments...).Output()
		return strings.Fields(string(output)), err
	}
	return harness.Poll(ctx, time.Minute, func() error {
		images, err := list("image", "ls", "--quiet", "--no-trunc", "--filter", "reference="+resourceName(root)+"/*")
		if err != nil || len(images) == 0 {
			return err
		}
		var containers []string
		for _, image := range images {
			found, err := list("ps", "--all", "--quiet", "--filter", "ancestor="+image)
			if err != nil {
				return err
			}
			containers = append(containers, found...)
		}
		if len(containers) > 0 {
			// the next check sees the result
			_ = machine.docker(ctx, append([]string{"rm", "--force"}, containers...)...).Run()
		}
		_ = machine.docker(ctx, append([]string{"image", "rm", "--force"}, images...)...).Run()
		return fmt.Errorf("the container engine still has containers %v and images %v", containers, images)
	})
}
