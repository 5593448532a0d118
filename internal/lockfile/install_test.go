package lockfile_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mobilegateway/internal/repository"
)

// maven is a stub that copies the files of ./registry, as Maven copies what a registry gives.
const maven = `#!/bin/sh
for argument in "$@"; do case $argument in -DoutputDirectory=*) folder=${argument#*=} ;; esac; done
mkdir -p "$folder" && cp "$REGISTRY"/* "$folder"
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
		"e2e/tools/uv.txt": "", "bin/mvn": maven, "bin/java": "#!/bin/sh\n",
	}
	for name, content := range files {
		all["registry/"+name] = content
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
