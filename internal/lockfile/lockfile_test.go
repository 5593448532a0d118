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
	npmHash = "sha512-woDEJy/Df0EBFKJ2N7HSL4SiH5UL1GDwxvBeBjaKvqmUApgTKapcoQiAgZKrLSUmrWU6VYyHz41Sz58Hi6YPmg=="
	pipHash = "--hash=sha256:1b274df81de5b000ff78db433e7328b87e52e3c38481c60f8e488c3095beef05"
)

// readers are the readers of lock files, by a pattern of their names. besides are the hashes of a file that has none.
var readers = []struct {
	pattern, besides string
	read             func(text, besides []byte) ([]string, error)
}{
	{"package-lock.json", "", alone(lockfile.UnprotectedNPM)},
	{"*.lock", "", alone(unprotectedPip)},
	{"uv.txt", "", alone(unprotectedPip)},
	{"pom.xml", "pom.sha256", unprotectedMaven},
}

func alone(read func([]byte) ([]string, error)) func(text, besides []byte) ([]string, error) {
	return func(text, _ []byte) ([]string, error) { return read(text) }
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
			var besides []byte
			if reader.besides != "" {
				if besides, err = os.ReadFile(filepath.Join(root, path.Dir(name), reader.besides)); err != nil {
					t.Errorf("%s: %v: add the hashes of its files", name, err)
				}
			}
			unprotected, err := reader.read(text, besides)
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
		"npm": {lockfile.UnprotectedNPM, npm(`"node_modules/a":{"integrity":"` + npmHash + `"}`), nil, false},
		"npm without a hash": {lockfile.UnprotectedNPM,
			npm(`"node_modules/@s/a":{"version":"1"}`), []string{"@s/a"}, false},
		"npm with a short hash": {lockfile.UnprotectedNPM,
			npm(`"node_modules/a":{"integrity":"sha512-x"}`), []string{"a"}, false},
		"npm with SHA-1": {lockfile.UnprotectedNPM,
			npm(`"node_modules/a":{"integrity":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="}`), []string{"a"}, false},
		"npm with a link":         {lockfile.UnprotectedNPM, npm(`"node_modules/a":{"link":true}`), nil, false},
		"npm of an older version": {lockfile.UnprotectedNPM, `{"lockfileVersion":1,"dependencies":{}}`, nil, true},
		"npm, not JSON":           {lockfile.UnprotectedNPM, "{", nil, true},
		"pip":                     {unprotectedPip, "# by uv\na==1 \\\n    " + pipHash + "\n", nil, false},
		"pip without a hash":      {unprotectedPip, "a==1\nb==2 " + pipHash + "\n", []string{"a==1"}, false},
		"pip without a version":   {unprotectedPip, "a>=1 " + pipHash + "\n", []string{"a>=1"}, false},
		"pip with MD5": {unprotectedPip,
			"a==1 --hash=md5:00 " + pipHash + "\n", []string{"a==1"}, false},
		"pip, empty": {unprotectedPip, "# nothing\n", nil, true},
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

func TestUnprotectedJars(t *testing.T) {
	const (
		hash = "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d"
		pom  = `<project><dependencyManagement><dependencies><dependency><artifactId>bom</artifactId></dependency>
			</dependencies></dependencyManagement><dependencies>
			<dependency><artifactId>a</artifactId><version>1.0</version></dependency></dependencies></project>`
	)
	cases := map[string]struct {
		pom, hashes string
		want        []string
		invalid     bool
	}{
		"protected":       {pom, hash + "  a-1.0.jar\n" + hash + "  other-2.jar\n", nil, false},
		"no hashes":       {pom, "", []string{"a-1.0.jar"}, false},
		"another version": {pom, hash + "  a-1.1.jar\n", []string{"a-1.0.jar"}, false},
		"a short hash":    {pom, "0b3e  a-1.0.jar\n", []string{"0b3e  a-1.0.jar", "a-1.0.jar"}, false},
		"another folder":  {pom, hash + "  ../a-1.0.jar\n", []string{hash + "  ../a-1.0.jar", "a-1.0.jar"}, false},
		"no dependency":   {"<project/>", "", nil, true},
		"not XML":         {"{", "", nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := unprotectedMaven([]byte(c.pom), []byte(c.hashes))
			if !slices.Equal(got, c.want) || (err != nil) != c.invalid {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
