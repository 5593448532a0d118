package pages

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// debianPackages are the packages of Debian 12 for PHP's command line.
var debianPackages = []string{"php8.2-cli", "php8.2-common", "libargon2-1", "libsodium23", "libedit2", "libpcre2-8-0",
	"libxml2"}

// php returns the command for PHP: the program on the PATH, else Debian's, unpacked below .local/tools.
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

// unpackDebianPackages downloads and unpacks the packages. The folder gets its name when it is complete.
func unpackDebianPackages(folder string) error {
	partial := fmt.Sprintf("%s.%d", folder, os.Getpid())
	defer func() { _ = os.RemoveAll(partial) }() // it is renamed already after success
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	script := "apt-cache policy " + debianPackages[0] + " | grep -q 'Candidate: [0-9]' || apt-get -qq update\n" +
		"apt-get -qq -o APT::Sandbox::User=root download " + strings.Join(debianPackages, " ") + "\n" +
		"for deb in *.deb; do dpkg -x $deb .; done; rm *.deb"
	command := exec.Command("sh", "-euc", script)
	command.Dir = partial
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack php: %w\n%s", err, output)
	}
	return os.Rename(partial, folder)
}
