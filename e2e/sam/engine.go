package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"mobilegateway/e2e/stage"
)

// baseImage is what SAM builds its containers on.
const baseImage = "gateway-e2e/provided:al2023"

// engineRoot is where the engine's packages are unpacked.
func engineRoot(root string) string { return filepath.Join(stage.Tools(root), "engine", "root") }

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

// docker runs the engine's own client.
func docker(ctx context.Context, root, host string, stdin []byte, arguments ...string) error {
	command := exec.CommandContext(ctx, filepath.Join(engineRoot(root), "usr", "bin", "docker"), arguments...)
	command.Env, command.Stdin = engineEnvironment(root, host), bytes.NewReader(stdin)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker %s: %w: %s", arguments[0], err, output)
	}
	return nil
}

// runs tells whether an engine answers.
func runs(ctx context.Context, root, host string) bool {
	return docker(ctx, root, host, nil, "info") == nil
}

// startEngine starts an engine and returns its address. What it writes stands below dir.
func startEngine(ctx context.Context, root, dir string) (host string, stop func(), err error) {
	host = "unix://" + filepath.Join(dir, "docker.sock")
	process, err := stage.Start(filepath.Join(dir, "dockerd.log"), engineEnvironment(root, ""),
		filepath.Join(engineRoot(root), "usr", "sbin", "dockerd"),
		"--data-root", filepath.Join(dir, "docker"), "--exec-root", filepath.Join(dir, "docker-run"),
		"--pidfile", filepath.Join(dir, "docker.pid"), "-H", host,
		"--userland-proxy=false") // the proxy accepts before the container listens, and SAM then answers 502
	if err != nil {
		return "", nil, err
	}
	for began := time.Now(); !runs(ctx, root, host); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 30*time.Second || ctx.Err() != nil {
			process.Stop()
			return "", nil, fmt.Errorf("the container engine does not start; see %s", filepath.Join(dir, "dockerd.log"))
		}
	}
	return host, process.Stop, nil
}

// importImage makes the base image: a shell with the few commands of SAM's own Dockerfile, and the environment that the
// functions are to find. SAM passes on no variable that the template does not declare; those of the image it keeps.
func importImage(ctx context.Context, root, host string, environment map[string]string) error {
	shell, err := os.ReadFile(filepath.Join(engineRoot(root), "bin", "busybox"))
	if err != nil {
		return err
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	var faults []error
	put := func(header *tar.Header, content []byte) {
		header.Size = int64(len(content))
		faults = append(faults, w.WriteHeader(header))
		_, err := w.Write(content)
		faults = append(faults, err)
	}
	for _, folder := range []string{"bin/", "opt/", "var/task/", "var/runtime/", "var/empty/"} {
		put(&tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}, nil)
	}
	put(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil)
	put(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, shell)
	for _, name := range []string{"sh", "mv", "chmod", "cp", "rm", "mkdir"} {
		put(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox"}, nil)
	}
	if err := errors.Join(append(faults, w.Close())...); err != nil {
		return err
	}
	arguments := []string{"import"}
	for name, value := range environment {
		arguments = append(arguments, "--change", "ENV "+name+"="+value)
	}
	return docker(ctx, root, host, image.Bytes(), append(arguments, "-", baseImage)...)
}

// gateway is this host's address as a container sees it.
func gateway() (string, error) {
	bridge, err := net.InterfaceByName("docker0")
	if err != nil {
		return "", fmt.Errorf("the engine's bridge: %w", err)
	}
	addresses, err := bridge.Addrs()
	for _, address := range addresses {
		if network, isNetwork := address.(*net.IPNet); isNetwork && network.IP.To4() != nil {
			return network.IP.String(), nil
		}
	}
	return "", errors.Join(err, errors.New("the engine's bridge has no IPv4 address"))
}

// The kernel's registry of interpreters for foreign programs, and our row in it: arm64 programs, by the first bytes of
// their ELF header, run by the emulator, which is opened once (F) so that containers need not have it.
const (
	formats = "/proc/sys/fs/binfmt_misc"
	row     = "gateway-e2e-arm64"
	pattern = `:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:` +
		`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:`
)

// emulate lets this machine run programs for arm64, where it is none itself, until forget.
func emulate(root string) (forget func(), err error) {
	forget = func() {}
	if runtime.GOARCH == "arm64" {
		return forget, nil
	}
	mounted := false
	if _, err := os.Stat(filepath.Join(formats, "register")); errors.Is(err, fs.ErrNotExist) {
		if err := syscall.Mount("binfmt_misc", formats, "binfmt_misc", 0, ""); err != nil {
			return nil, fmt.Errorf("mount binfmt_misc, which needs root: %w", err)
		}
		mounted = true
	}
	own := filepath.Join(formats, row)
	_ = os.WriteFile(own, []byte("-1"), 0) // of a run that was killed
	emulator := filepath.Join(engineRoot(root), "usr", "bin", "qemu-aarch64-static")
	if err := os.WriteFile(filepath.Join(formats, "register"), []byte(":"+row+pattern+emulator+":F"), 0); err != nil {
		return nil, fmt.Errorf("register the emulator: %w", err)
	}
	return func() {
		_ = os.WriteFile(own, []byte("-1"), 0)
		if mounted {
			_ = syscall.Unmount(formats, 0)
		}
	}, nil
}
