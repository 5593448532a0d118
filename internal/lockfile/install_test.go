package lockfile_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mobilegateway/internal/repository"
)

// maven is a stub that copies the files of ./registry, as Maven copies what a registry gives. It refuses every plugin
// but our own: a plugin of a registry runs before its hash is compared.
const maven = `#!/bin/sh
for argument in "$@"; do case $argument in
  -Doutput=*) folder=${argument#*=}/lib ;;
  mobilegateway:copy:1:copy) ours=1 ;;
  *:*:*) echo "executes $argument" >&2; exit 1 ;;
esac; done
[ -n "$folder" ] || { echo "Maven home: /"; exit; }
[ -n "$ours" ] && mkdir -p "$folder" && cp "$REGISTRY"/* "$folder"
`

// TestInstallChecksJars runs e2e/tools/install on a registry that gives other files than pom.sha256 lists.
func TestInstallChecksJars(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("flock is not on the PATH")
	}
	listed := hexOf("a") + "  a-1.jar\n" + hexOf("b") + "  b-1.jar\n"
	cases := map[string]struct {
		files  map[string]string
		hashes string
		want   string // in the only line of the refusal; "" is an installation
	}{
		"the listed files":  {map[string]string{"a-1.jar": "a", "b-1.jar": "b"}, listed, ""},
		"another content":   {map[string]string{"a-1.jar": "a", "b-1.jar": "x"}, listed, "for: b-1.jar - run nothing"},
		"a missing file":    {map[string]string{"a-1.jar": "a"}, listed, "for: b-1.jar - run nothing"},
		"a file more":       {map[string]string{"a-1.jar": "a", "b-1.jar": "b", "c.jar": ""}, listed, "for: c.jar - "},
		"a hash is missing": {map[string]string{"a-1.jar": "a", "b": "b"}, hexOf("a") + "  a-1.jar\n", "for: b - "},
		"no hashes":         {map[string]string{"a-1.jar": "a"}, "", "for: a-1.jar - run nothing"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			output, err := install(t, root, c.files, c.hashes)
			_, statErr := os.Stat(filepath.Join(root, ".local/tools/dynamodb-local/installed.xml"))
			installed := statErr == nil
			if installed != (c.want == "") || (err == nil) != installed {
				t.Fatalf("installed = %t, error = %v: %s", installed, err, output)
			}
			_, refusal, _ := strings.Cut(output, "\n") // the first line says what it installs
			if !strings.Contains(refusal, c.want) || strings.Count(refusal, "\n") > 1 {
				t.Errorf("it printed %q, want one line with %q", refusal, c.want)
			}
		})
	}
}

// install runs a copy of e2e/tools/install below root and returns what it printed.
func install(t *testing.T, root string, files map[string]string, hashes string) (string, error) {
	t.Helper()
	checkout, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(checkout, "e2e/tools/install"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"e2e/tools/install": string(script), "e2e/tools/pom.xml": "<project/>", "e2e/tools/pom.sha256": hashes,
		"e2e/tools/uv.txt": "", "bin/mvn": maven, "bin/javac": "#!/bin/sh\n", "bin/jar": "#!/bin/sh\n",
	}
	for name, content := range files {
		all["registry/"+name] = content
	}
	for _, name := range []string{"copy", "Copy.java", "plugin.xml"} {
		text, err := os.ReadFile(filepath.Join(checkout, "e2e/tools/maven", name))
		if err != nil {
			t.Fatal(err)
		}
		all["e2e/tools/maven/"+name] = string(text)
	}
	for name, content := range all {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "e2e/tools/install"), "dynamodb")
	command.Dir = root
	command.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"),
		"REGISTRY="+filepath.Join(root, "registry"))
	output, err := command.CombinedOutput()
	return string(output), err
}

func hexOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// TestWorkflowsArePinned checks that the public workflow names each action and each container by a hash: a tag may
// name something else tomorrow.
func TestWorkflowsArePinned(t *testing.T) {
	checkout, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(checkout, ".github/workflows/ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^[ -]*(?:uses|image|container): *(\S+)`).FindAllSubmatch(text, -1)
	if len(named) < 2 {
		t.Fatalf("%d actions and containers, want some", len(named))
	}
	pinned := regexp.MustCompile(`^\S+@(?:[0-9a-f]{40}|sha256:[0-9a-f]{64})$`)
	for _, name := range named {
		if !pinned.Match(name[1]) {
			t.Errorf("%s is named by a tag, want a hash", name[1])
		}
	}
}

// TestMavenExecutesNoPlugin checks that no script lets Maven execute a plugin of a registry.
func TestMavenExecutesNoPlugin(t *testing.T) {
	checkout, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"e2e/tools/install", "e2e/tools/maven/copy", "tools/licences/check.py"} {
		text, err := os.ReadFile(filepath.Join(checkout, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, plugin := range regexp.MustCompile(`[\w.-]+:[\w.-]+-plugin:\S+`).FindAll(text, -1) {
			t.Errorf("%s executes %s before its hash is compared", name, plugin)
		}
	}
}
