package dynoxide

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"mobilegateway/internal/file"
	"mobilegateway/internal/lockfile"
	"mobilegateway/internal/repository"
)

// pins are the files of an installation. The lock file names no registry: npm uses the configured one. It has a hash
// for each package. npm/add-platform adds a platform.
//
//go:embed npm/package.json npm/package-lock.json npm/.npmrc npm/prepare.js npm/storage.sql
var pins embed.FS

// otherServer is the advice for a machine that cannot run this server.
const otherServer = "set AWS_ENDPOINT_URL_DYNAMODB to another DynamoDB-compatible server"

// install returns the folder of the installation and makes it first if it is missing. Parallel processes wait for each
// other, so only the first one installs.
func install(ctx context.Context) (string, error) {
	root, err := repository.Root()
	if err != nil {
		return "", err
	}
	folder := toolFolder(root)
	if isFile(engine(folder)) {
		return folder, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	unlock, err := file.Lock(folder + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if !isFile(engine(folder)) {
		err = installInto(ctx, folder)
	}
	return folder, err
}

// engine is the path of the server's binary in an installation.
func engine(tool string) string {
	name := "dynoxide"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(tool, "node_modules", "@dynoxide", platform(), name)
}

// installInto runs npm ci, checks that there is a binary for this machine and makes the empty data file. It does so in
// a folder beside the final one, which it renames at the end, so an incomplete installation is never used.
func installInto(ctx context.Context, folder string) error {
	lock, err := pins.ReadFile("npm/package-lock.json")
	if err == nil {
		err = checkLock(lock)
	}
	if err != nil {
		return err
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm is not on the PATH: install Node.js with npm, " + otherServer)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(folder), "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	files, err := fs.Sub(pins, "npm")
	if err == nil {
		err = os.CopyFS(fresh, files)
	}
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	command.Dir = fresh
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci failed (%w): check that npm reaches its registry, then try again; it printed: %s",
			err, lastLine(string(output)))
	}
	if !isFile(engine(fresh)) {
		return fmt.Errorf("npm/package-lock.json has no server for %s: "+
			"add its hash with world/dynoxide/npm/add-platform %s, or %s", platform(), platform(), otherServer)
	}
	if err := makeEmptyStorage(ctx, fresh); err != nil {
		return err
	}
	_ = os.RemoveAll(folder)
	return os.Rename(fresh, folder)
}

// checkLock refuses a lock with a package that has no hash. npm ci would install anything under its name.
func checkLock(lock []byte) error {
	unprotected, err := lockfile.UnprotectedNPM(lock)
	if err == nil && len(unprotected) > 0 {
		err = fmt.Errorf("world/dynoxide/npm/package-lock.json has no hash for %s: add it",
			strings.Join(unprotected, ", "))
	}
	return err
}

// toolFolder is the folder of this installation. Other pinned files have another folder.
func toolFolder(root string) string {
	all := sha256.New()
	entries, _ := pins.ReadDir("npm") // the files are in the program
	for _, entry := range entries {
		content, _ := pins.ReadFile("npm/" + entry.Name())
		_, _ = all.Write(content) // a hash never fails
	}
	return filepath.Join(root, ".local", "tools", "dynoxide-"+hex.EncodeToString(all.Sum(nil)[:6]))
}

// platform is the name of this machine in the package names.
func platform() string {
	system, machine := runtime.GOOS, runtime.GOARCH
	if system == "windows" {
		system = "win32"
	}
	if machine == "amd64" {
		machine = "x64"
	}
	return system + "-" + machine
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
