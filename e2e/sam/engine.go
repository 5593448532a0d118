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

// engineRoot is where the engine's packages are unpacked.
func engineRoot(root string) string { return filepath.Join(harness.ToolsDir(root), "engine", "root") }

// engineEnvironment finds the engine's programs and libraries.
func engineEnvironment(root, host string) []string {
	at := engineRoot(root)
	libraries, _ := filepath.Glob(filepath.Join(at, "usr", "lib", "*-linux-gnu")) // the pattern is a good one
	environment := append(os.Environ(),
		"PATH="+filepath.Join(at, "usr", "sbin")+":"+filepath.Join(at, "usr", "bin")+":"+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+strings.Join(libraries, ":"), "XTABLES_LIBDIR="+filepath.Join(strings.Join(libraries, ""), "xtables"),
	)
	if host != "" {
		environment = append(environment, "DOCKER_HOST="+host)
	}
	return environment
}

// docker is a command of the engine's own client.
func docker(ctx context.Context, root, host string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(engineRoot(root), "usr", "bin", "docker"), arguments...)
	command.Env = engineEnvironment(root, host)
	return command
}

// engineRunning tells whether an engine answers.
func engineRunning(ctx context.Context, root, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return docker(ctx, root, host, "info").Run() == nil
}

// controlGroup is where our engine puts the groups of its containers, which outlive everything but the sweeper.
func controlGroup(root string) string { return "/" + resourceName(root) }

// runDir is where an engine has its sockets, in our mounts a folder of our own.
const runDir = "/run"

// mountPrivateRunAndEtc gives the engine a /run and an /etc of its own to write to, in our mounts alone.
func mountPrivateRunAndEtc() error {
	if err := syscall.Mount("run", runDir, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount a %s of our own: %w", runDir, err)
	}
	upper, scratch := runDir+"/etc", runDir+"/etc-work"
	for _, folder := range []string{upper, scratch} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	if err := syscall.Mount("etc", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+upper+",workdir="+scratch); err != nil {
		return fmt.Errorf("mount an /etc of our own: %w", err)
	}
	return nil
}

// startEngine starts an engine in our own network and returns its address. What it keeps stands below the site's folder.
func startEngine(ctx context.Context, site harness.Workspace) (host string, err error) {
	if err := mountPrivateRunAndEtc(); err != nil {
		return "", err
	}
	settings := runDir + "/daemon.json" // none of the machine's
	if err := os.WriteFile(settings, []byte("{}"), 0o600); err != nil {
		return "", err
	}
	host = "unix://" + runDir + "/docker.sock"
	log := filepath.Join(site.Dir, "dockerd.log")
	_, err = harness.Start(log, engineEnvironment(site.Root, ""),
		filepath.Join(engineRoot(site.Root), "usr", "sbin", "dockerd"),
		"--data-root", filepath.Join(site.Dir, "docker"), "--exec-root", runDir+"/docker", "--pidfile", runDir+"/docker.pid", "-H", host,
		"--config-file", settings,
		"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", controlGroup(site.Root),
		"--userland-proxy=false") // the proxy accepts before the container listens, and SAM then answers 502
	if err != nil {
		return "", err
	}
	for started := time.Now(); !engineRunning(ctx, site.Root, host); time.Sleep(100 * time.Millisecond) {
		if time.Since(started) > 30*time.Second || ctx.Err() != nil {
			text, _ := os.ReadFile(log)
			return "", fmt.Errorf("the container engine does not start: %s", text[max(0, len(text)-3000):])
		}
	}
	return host, nil
}

// importImage makes a base image: a shell with the few commands of SAM's own Dockerfile, and the environment that the
// functions are to find. SAM passes on no variable that the template does not declare; those of the image it keeps.
func importImage(ctx context.Context, root, host, name string, environment map[string]string) error {
	shell, err := os.ReadFile(filepath.Join(engineRoot(root), "bin", "busybox"))
	if err != nil {
		return err
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	var errs []error
	put := func(header *tar.Header, content []byte) {
		header.Size = int64(len(content))
		errs = append(errs, w.WriteHeader(header))
		_, err := w.Write(content)
		errs = append(errs, err)
	}
	for _, folder := range []string{"bin/", "opt/", "var/task/", "var/runtime/", "var/empty/"} {
		put(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}, nil)
	}
	put(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
	put(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, shell)
	for _, name := range []string{"sh", "mv", "chmod", "cp", "rm", "mkdir"} {
		put(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox"}, nil)
	}
	if err := errors.Join(append(errs, w.Close())...); err != nil {
		return err
	}
	arguments := []string{"import"}
	for name, value := range environment {
		arguments = append(arguments, "--change", "ENV "+name+"="+value)
	}
	command := docker(ctx, root, host, append(arguments, "-", name)...)
	command.Stdin = &image
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("docker import: %w: %s", err, output)
	}
	return nil
}

// bridgeAddress is this host's address as a container sees it.
func bridgeAddress() (string, error) {
	bridge, err := net.InterfaceByName("docker0")
	if err != nil {
		return "", fmt.Errorf("the engine's bridge on this machine: %w", err)
	}
	addresses, err := bridge.Addrs()
	for _, address := range addresses {
		if network, isNetwork := address.(*net.IPNet); isNetwork && network.IP.To4() != nil {
			return network.IP.String(), nil
		}
	}
	return "", errors.Join(err, errors.New("the engine's bridge has no IPv4 address"))
}
