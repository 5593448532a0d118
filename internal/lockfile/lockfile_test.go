package lockfile_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/lockfile"
	"mobilegateway/internal/repository"
)

const (
	sha512 = "sha512-woDEJy/Df0EBFKJ2N7HSL4SiH5UL1GDwxvBeBjaKvqmUApgTKapcoQiAgZKrLSUmrWU6VYyHz41Sz58Hi6YPmg=="
	sha256 = "--hash=sha256:1b274df81de5b000ff78db433e7328b87e52e3c38481c60f8e488c3095beef05"
)

// readers are the readers of lock files, by a pattern of their names.
var readers = []struct {
	pattern string
	read    func([]byte) ([]string, error)
}{
	{"package-lock.json", lockfile.UnprotectedNPM},
	{"*.lock", lockfile.UnprotectedPip},
	{"uv.txt", lockfile.UnprotectedPip},
}

// TestEveryEntryHasAHash is the gate over every lock file that git sees.
func TestEveryEntryHasAHash(t *testing.T) {
	root, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Skip("this folder is not a checkout of git")
	}
	read := map[string]int{}
	for name := range strings.SplitSeq(string(names), "\x00") {
		for _, reader := range readers {
			if matches, _ := path.Match(reader.pattern, path.Base(name)); !matches {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, name))
			if os.IsNotExist(err) {
				continue // deleted, and not yet committed
			}
			unprotected, err := reader.read(text)
			if err != nil || len(unprotected) > 0 {
				t.Errorf("%s: no hash protects %q: add it (%v)", name, unprotected, err)
			}
			read[reader.pattern]++
		}
	}
	for _, reader := range readers {
		if read[reader.pattern] == 0 {
			t.Errorf("no lock file has a name like %s", reader.pattern)
		}
	}
}

func TestUnprotectedEntries(t *testing.T) {
	npm := func(packages string) string {
		return `{"lockfileVersion":3,"packages":{"":{"name":"x"},` + packages + `}}`
	}
	cases := map[string]struct {
		read    func([]byte) ([]string, error)
		text    string
		want    []string
		invalid bool
	}{
		"npm": {lockfile.UnprotectedNPM, npm(`"node_modules/a":{"integrity":"` + sha512 + `"}`), nil, false},
		"npm without a hash": {lockfile.UnprotectedNPM,
			npm(`"node_modules/@s/a":{"version":"1"}`), []string{"@s/a"}, false},
		"npm with a short hash": {lockfile.UnprotectedNPM,
			npm(`"node_modules/a":{"integrity":"sha512-x"}`), []string{"a"}, false},
		"npm with SHA-1": {lockfile.UnprotectedNPM,
			npm(`"node_modules/a":{"integrity":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="}`), []string{"a"}, false},
		"npm with a link":         {lockfile.UnprotectedNPM, npm(`"node_modules/a":{"link":true}`), nil, false},
		"npm of an older version": {lockfile.UnprotectedNPM, `{"lockfileVersion":1,"dependencies":{}}`, nil, true},
		"npm, not JSON":           {lockfile.UnprotectedNPM, "{", nil, true},
		"pip":                     {lockfile.UnprotectedPip, "# made by uv\na==1 \\\n    " + sha256 + "\n", nil, false},
		"pip without a hash":      {lockfile.UnprotectedPip, "a==1\nb==2 " + sha256 + "\n", []string{"a==1"}, false},
		"pip without a version":   {lockfile.UnprotectedPip, "a>=1 " + sha256 + "\n", []string{"a>=1"}, false},
		"pip with MD5": {lockfile.UnprotectedPip,
			"a==1 --hash=md5:00 " + sha256 + "\n", []string{"a==1"}, false},
		"pip, empty": {lockfile.UnprotectedPip, "# nothing\n", nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.read([]byte(c.text))
			if !slices.Equal(got, c.want) || (err != nil) != c.invalid {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
