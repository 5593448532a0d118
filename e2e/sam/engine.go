//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mobilegateway/e2e/harness"
)

// engine is a container engine. host is its address, or "" for the default of the docker client.
type engine struct{ root, host string }

// engineRoot is the folder of the engine's unpacked packages.
func engineRoot(root string) string { return filepath.Join(harness.ToolsDir(root), "engine", "root") }

// environment returns variables that lead to the engine's programs, libraries and address.
func (e engine) environment() []string {
	at := engineRoot(e.root)
	libraries, _ := filepath.Glob(filepath.Join(at, "usr", "lib", "*-linux-gnu")) // the pattern is valid
	environment := append(os.Environ(),
		"PATH="+filepath.Join(at, "usr", "sbin")+":"+filepath.Join(at, "usr", "bin")+":"+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+strings.Join(libraries, ":"),
		"XTABLES_LIBDIR="+filepath.Join(strings.Join(libraries, ""), "xtables"),
	)
	if e.host != "" {
		environment = append(environment, "DOCKER_HOST="+e.host)
	}
	return environment
}

func (e engine) docker(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(engineRoot(e.root), "usr", "bin", "docker"), arguments...)
	command.Env = e.environment()
	return command
}

func (e engine) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return e.docker(ctx, "info").Run()
}

// controlGroup is the parent of the control groups of our containers. Only the sweeper removes it.
func controlGroup(root string) string { return "/" + resourceName(root) }

// runDir is the folder of the engine's sockets. It is private to this worker.
const runDir = "/run"

// mountPrivateRunAndEtc mounts a private /run and /etc, which the engine can write to.
func mountPrivateRunAndEtc() error {
	if err := syscall.Mount("run", runDir, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount a private %s: %w", runDir, err)
	}
	upper, scratch := runDir+"/etc", runDir+"/etc-work"
	for _, folder := range []string{upper, scratch} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	if err := syscall.Mount("etc", "/etc", "overlay", 0,
		"lowerdir=/etc,upperdir="+upper+",workdir="+scratch); err != nil {
		return fmt.Errorf("mount a private /etc: %w", err)
	}
	return nil
}

// startEngine starts an engine in this worker's network, with its data below the site's folder.
func startEngine(ctx context.Context, site harness.Workspace) (engine, error) {
	if err := mountPrivateRunAndEtc(); err != nil {
		return engine{}, err
	}
	settings := runDir + "/daemon.json" // replaces the machine's settings
	if err := os.WriteFile(settings, []byte("{}"), 0o600); err != nil {
		return engine{}, err
	}
	e := engine{site.Root, "unix://" + runDir + "/docker.sock"}
	log := filepath.Join(site.Dir, "dockerd.log")
	_, err := harness.Start(log, engine{root: site.Root}.environment(),
		filepath.Join(engineRoot(site.Root), "usr", "sbin", "dockerd"),
		"--data-root", filepath.Join(site.Dir, "docker"), "--exec-root", runDir+"/docker",
		"--pidfile", runDir+"/docker.pid", "-H", e.host, "--config-file", settings,
		"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", controlGroup(site.Root),
		"--userland-proxy=false") // the proxy accepts before the container listens, and SAM then returns 502
	if err != nil {
		return engine{}, err
	}
	if err := harness.Poll(ctx, 30*time.Second, func() error { return e.ping(ctx) }); err != nil {
		return engine{}, fmt.Errorf("the container engine does not start: %w: see %s", err, log)
	}
	return e, nil
}

// importImage creates a base image: a shell with the few commands of SAM's own Dockerfile, and the functions'
// variables. SAM passes only variables that the template declares, but it keeps the variables of the image.
func (e engine) importImage(ctx context.Context, name string, environment map[string]string) error {
	image, err := baseImageArchive(filepath.Join(engineRoot(e.root), "bin", "busybox"))
	if err != nil {
		return err
	}
	arguments := []string{"import"}
	for name, value := range environment {
		arguments = append(arguments, "--change", "ENV "+name+"="+value)
	}
	command := e.docker(ctx, append(arguments, "-", name)...)
	command.Stdin = image
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("docker import: %w: %s", err, output)
	}
	return nil
}

// baseImageArchive returns the file system of the base image as a tar archive.
func baseImageArchive(busybox string) (*bytes.Buffer, error) {
	shell, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	headers := []*tar.Header{{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}}
	for _, folder := range []string{"bin/", "opt/", "var/task/", "var/runtime/", "var/empty/"} {
		headers = append(headers, &tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755})
	}
	for _, name := range []string{"sh", "mv", "chmod", "cp", "rm", "mkdir"} {
		headers = append(headers, &tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox"})
	}
	headers = append(headers, &tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755,
		Size: int64(len(shell))})
	for _, header := range headers {
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	_, err = w.Write(shell) // the content of the last header
	return &image, errors.Join(err, w.Close())
}

// bridgeAddress returns this host's address as a container reaches it.
func bridgeAddress() (string, error) {
	bridge, err := net.InterfaceByName("docker0")
	if err != nil {
		return "", fmt.Errorf("the engine's network bridge docker0: %w", err)
	}
	addresses, err := bridge.Addrs()
	for _, address := range addresses {
		if network, isNetwork := address.(*net.IPNet); isNetwork && network.IP.To4() != nil {
			return network.IP.String(), nil
		}
	}
	return "", errors.Join(err, errors.New("the engine's network bridge docker0 has no IPv4 address"))
}
