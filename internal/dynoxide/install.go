package dynoxide

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// pins are the package list and its lock file, which names no registry: npm takes the one it is configured with.
//
//go:embed npm/package.json npm/package-lock.json npm/.npmrc
var pins embed.FS

// maxParents bounds the search for the repository's root.
const maxParents = 32

// install returns the path of the server's binary, and installs it first where it is missing. Parallel processes wait for
// one another, so that only the first installs.
func install(ctx context.Context) (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	folder, err := toolFolder(root)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, "node_modules", "@dynoxide", platform(), binaryName())
	if isFile(binary) {
		return binary, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", fmt.Errorf("dynoxide: %w", err)
	}
	unlock, err := lock(folder + ".lock")
	if err != nil {
		return "", fmt.Errorf("dynoxide: locking the installation: %w", err)
	}
	defer unlock()
	if isFile(binary) {
		return binary, nil
	}
	if err := installInto(ctx, folder); err != nil {
		return "", err
	}
	if !isFile(binary) {
		return "", fmt.Errorf("dynoxide: there is no server for %s: set AWS_ENDPOINT_URL_DYNAMODB to another DynamoDB-compatible one", platform())
	}
	return binary, nil
}

// installInto runs npm ci in a folder beside the final one and then renames it, so that a half installation is never used.
func installInto(ctx context.Context, folder string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("dynoxide: npm is not on the PATH: install Node.js with npm, or set AWS_ENDPOINT_URL_DYNAMODB to another DynamoDB-compatible server")
	}
	fresh, err := os.MkdirTemp(filepath.Dir(folder), "installing-")
	if err != nil {
		return fmt.Errorf("dynoxide: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	for _, name := range pinned() {
		content, err := pins.ReadFile("npm/" + name)
		if err != nil {
			return fmt.Errorf("dynoxide: %w", err)
		}
		if err := os.WriteFile(filepath.Join(fresh, name), content, 0o644); err != nil {
			return fmt.Errorf("dynoxide: %w", err)
		}
	}
	command := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	command.Dir = fresh
	output := &beginning{}
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		return fmt.Errorf("dynoxide: npm ci failed (%w): see that npm reaches its registry, then try again; it said: %s", err, output.last())
	}
	_ = os.RemoveAll(folder)
	if err := os.Rename(fresh, folder); err != nil {
		return fmt.Errorf("dynoxide: %w", err)
	}
	return nil
}

// pinned names the files of the package list.
func pinned() []string { return []string{"package.json", "package-lock.json", ".npmrc"} }

// toolFolder is where this very package list is installed: another list goes to another folder.
func toolFolder(root string) (string, error) {
	var all bytes.Buffer
	for _, name := range pinned() {
		content, err := pins.ReadFile("npm/" + name)
		if err != nil {
			return "", fmt.Errorf("dynoxide: %w", err)
		}
		all.Write(content)
	}
	sum := sha256.Sum256(all.Bytes())
	return filepath.Join(root, ".local", "tools", "dynoxide-"+hex.EncodeToString(sum[:6])), nil
}

// repositoryRoot is the folder with the go.mod above the working directory.
func repositoryRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("dynoxide: %w", err)
	}
	for range maxParents {
		if isFile(filepath.Join(folder, "go.mod")) {
			return folder, nil
		}
		folder = filepath.Dir(folder)
	}
	return "", errors.New("dynoxide: no go.mod above the working directory: run it inside the checkout")
}

// platform is this machine as the packages are named.
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

func binaryName() string {
	if runtime.GOOS == "windows" {
		return "dynoxide.exe"
	}
	return "dynoxide"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
