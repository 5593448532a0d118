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

	"mobilegateway/e2e/stage"
)

// ours begins all names that stand outside of our namespaces.
const ours = "gateway-e2e-"

// mark is the name of what a checkout's runs put there.
func mark(root string) string {
	sum := sha256.Sum256([]byte(root))
	return ours + hex.EncodeToString(sum[:4])
}

// sweep removes what no namespace holds: the row for the emulator, the control groups of our own engine's containers, and
// our containers and images in an engine that is another's.
func sweep(site stage.Site) error {
	return errors.Join(sweepRows(), sweepControlGroups(site.Root), sweepEngine(site.Root))
}

// The kernel's registry of interpreters for foreign programs, and our row in it: arm64 programs, by the first bytes of
// their ELF header, run by the emulator, which is opened once (F) so that containers need not have it.
const (
	formats = "/proc/sys/fs/binfmt_misc"
	pattern = `:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:` +
		`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:`
)

// emulator is the program that runs others for arm64.
func emulator(root string) string {
	return filepath.Join(engineRoot(root), "usr", "bin", "qemu-aarch64-static")
}

// showFormats mounts the registry, where it is not mounted, in the mounts of this process alone.
func showFormats() error {
	if _, err := os.Stat(filepath.Join(formats, "register")); err == nil {
		return nil
	}
	if err := syscall.Mount("binfmt_misc", formats, "binfmt_misc", 0, ""); err != nil {
		return fmt.Errorf("mount binfmt_misc, which needs root: %w", err)
	}
	return nil
}

// emulate lets this machine run programs for arm64, where it is none itself, until the sweeper removes the row.
func emulate(site stage.Site) error {
	if runtime.GOARCH == "arm64" {
		return nil
	}
	if err := showFormats(); err != nil {
		return err
	}
	row := ":" + mark(site.Root) + pattern + emulator(site.Root) + ":F"
	if err := os.WriteFile(filepath.Join(formats, "register"), []byte(row), 0); err != nil {
		return fmt.Errorf("register the emulator: %w", err)
	}
	return nil
}

// remove removes a row.
func remove(row string) error {
	err := os.WriteFile(row, []byte("-1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sweepRows removes the rows of runs that are over: that of this checkout, whose lock we hold, and those of other
// checkouts that are gone or whose lock is free.
func sweepRows() error {
	if runtime.GOARCH == "arm64" {
		return nil
	}
	if err := showFormats(); err != nil {
		return err
	}
	rows, err := filepath.Glob(filepath.Join(formats, ours+"*"))
	for _, row := range rows {
		text, fault := os.ReadFile(row)
		if fault == nil && !inUse(string(text)) {
			fault = remove(row)
		}
		err = errors.Join(err, fault)
	}
	return err
}

// inUse tells whether another checkout's run is at work with a row: it has its lock.
func inUse(row string) bool {
	_, after, _ := strings.Cut(row, "interpreter ")
	path, _, _ := strings.Cut(after, "\n")
	root, found := strings.CutSuffix(path, "/"+emulator(""))
	own, err := stage.Root()
	if !found || err != nil || root == own {
		return false
	}
	lock, err := os.Open(filepath.Join(root, ".local", "e2e-sam.lock"))
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	return stage.Lock(lock) != nil
}

// groupsTimeout is how long the processes of a killed run may take to leave their control groups.
const groupsTimeout = 10 * time.Second

// sweepControlGroups removes our engine's, in whichever version the machine has them.
func sweepControlGroups(root string) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var left []string
		for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			found, err := filepath.Glob(pattern + controlGroup(root))
			if err != nil {
				return err
			}
			left = append(left, found...)
		}
		if len(left) == 0 {
			return nil
		}
		for _, folder := range left {
			var inner []string
			_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					inner = append(inner, path)
				}
				return nil
			})
			for i := len(inner) - 1; i >= 0; i-- { // a group is removed after those in it
				_ = syscall.Rmdir(inner[i])
			}
		}
		if time.Since(began) > groupsTimeout {
			return fmt.Errorf("control groups are left: %v", left)
		}
	}
}

// sweepEngine removes containers and images of ours from an engine that ran already. SAM may be removing the same.
func sweepEngine(root string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host := os.Getenv("DOCKER_HOST")
	if !runs(ctx, root, host) {
		return nil
	}
	list := func(arguments ...string) ([]string, error) {
		output, err := docker(ctx, root, host, arguments...).Output()
		return strings.Fields(string(output)), err
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		var containers []string
		images, err := list("image", "ls", "--quiet", "--no-trunc", "--filter", "reference="+mark(root)+"/*")
		for _, image := range images {
			found, fault := list("ps", "--all", "--quiet", "--filter", "ancestor="+image)
			containers, err = append(containers, found...), errors.Join(err, fault)
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
