package doctest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// debianPackages are the packages of Debian 12 that PHP's command line needs and a small machine lacks.
var debianPackages = []string{"php8.2-cli", "php8.2-common", "libargon2-1", "libsodium23", "libedit2", "libpcre2-8-0", "libxml2"}

// php gives the words that start PHP: the one on the PATH, else Debian's own, unpacked below .local/tools without being installed.
var php = sync.OnceValues(func() ([]string, error) {
	if found, err := exec.LookPath("php"); err == nil {
		return []string{found, "-n"}, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, errors.New("php is not on the PATH")
	}
	folder, err := filepath.Abs(filepath.Join(rootDir, ".local", "tools", "php"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(folder); err != nil {
		if err := unpackDebianPackages(folder); err != nil {
			return nil, err
		}
	}
	libraries, err := filepath.Glob(filepath.Join(folder, "usr", "lib", "*-linux-gnu"))
	if err != nil || len(libraries) != 1 {
		return nil, fmt.Errorf("%s has %d folders of libraries: remove it", folder, len(libraries))
	}
	return []string{"env", "LD_LIBRARY_PATH=" + libraries[0], filepath.Join(folder, "usr", "bin", "php8.2"), "-n"}, nil
})

// unpackDebianPackages downloads the packages, into a folder that gets its name only when it is whole.
func unpackDebianPackages(folder string) error {
	half := fmt.Sprintf("%s.%d", folder, os.Getpid())
	defer func() { _ = os.RemoveAll(half) }() // gone already where all went well
	if err := os.MkdirAll(half, 0o755); err != nil {
		return err
	}
	script := "apt-cache policy " + debianPackages[0] + " | grep -q 'Candidate: [0-9]' || apt-get -qq update\n" +
		"apt-get -qq -o APT::Sandbox::User=root download " + strings.Join(debianPackages, " ") + "\n" +
		"for deb in *.deb; do dpkg -x $deb .; done; rm *.deb"
	command := exec.Command("sh", "-euc", script)
	command.Dir = half
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("php cannot be unpacked: %w\n%s", err, output)
	}
	return os.Rename(half, folder)
}
