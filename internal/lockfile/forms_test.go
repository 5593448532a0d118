package lockfile_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	pipHashForm = regexp.MustCompile(`^--hash=sha256:[0-9a-f]{64}$`)
	jarHashForm = regexp.MustCompile(`^[0-9a-f]{64}  [A-Za-z0-9._-]+$`)
)

// unprotectedPip returns the requirements without a version or a valid hash, in order. It refuses a file without any.
func unprotectedPip(text []byte) ([]string, error) {
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	var unprotected []string
	count := 0
	for line := range strings.Lines(joined) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		count++
		isOther := func(word string) bool { return !strings.HasPrefix(word, "--hash") }
		hashes := slices.DeleteFunc(slices.Clone(words), isOther)
		invalid := func(hash string) bool { return !pipHashForm.MatchString(hash) }
		if !strings.Contains(words[0], "==") || len(hashes) == 0 || slices.ContainsFunc(hashes, invalid) {
			unprotected = append(unprotected, words[0])
		}
	}
	if count == 0 {
		return nil, errors.New("the lock has no requirement")
	}
	return unprotected, nil
}

// unprotectedMaven returns the dependencies of a pom.xml that are not in hashes, the text of pom.sha256, and the lines
// of it without a valid hash. A pom.xml names no dependency of a dependency: e2e/tools/install compares all files.
func unprotectedMaven(pom, hashes []byte) ([]string, error) {
	var project struct {
		Dependencies []struct {
			Artifact string `xml:"artifactId"`
			Version  string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	if err := xml.Unmarshal(pom, &project); err != nil {
		return nil, fmt.Errorf("read the pom: %w", err)
	}
	if len(project.Dependencies) == 0 {
		return nil, errors.New("the pom has no dependency")
	}
	var unprotected []string
	protected := map[string]bool{}
	for line := range strings.Lines(string(hashes)) {
		line = strings.TrimSuffix(line, "\n")
		if !jarHashForm.MatchString(line) {
			unprotected = append(unprotected, line)
			continue
		}
		_, name, _ := strings.Cut(line, "  ")
		protected[name] = true
	}
	for _, d := range project.Dependencies {
		if name := d.Artifact + "-" + d.Version + ".jar"; !protected[name] {
			unprotected = append(unprotected, name)
		}
	}
	return unprotected, nil
}
