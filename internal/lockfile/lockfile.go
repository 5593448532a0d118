// Package lockfile finds the entries of lock files that no hash protects: a registry could give other content for them.
//
// It knows the forms that can leave the hash out: npm's package-lock.json, pip's requirements, and Maven's pom.xml with
// the hashes in pom.sha256 beside it. Go refuses a module without its line in go.sum. It reads no registry.
package lockfile

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	npmHash = regexp.MustCompile(`^sha512-[A-Za-z0-9+/]{86}==$`)
	pipHash = regexp.MustCompile(`^--hash=sha256:[0-9a-f]{64}$`)
	jarHash = regexp.MustCompile(`^[0-9a-f]{64}  [A-Za-z0-9._-]+$`)
)

// UnprotectedNPM returns the packages of a package-lock.json that have no valid hash, in order.
func UnprotectedNPM(text []byte) ([]string, error) {
	var lock struct {
		Version  int `json:"lockfileVersion"`
		Packages map[string]struct {
			Integrity string `json:"integrity"`
			Link      bool   `json:"link"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	if lock.Version != 3 || len(lock.Packages) < 2 {
		return nil, fmt.Errorf("the lock has version %d and %d packages, want version 3",
			lock.Version, len(lock.Packages))
	}
	var unprotected []string
	for _, name := range slices.Sorted(maps.Keys(lock.Packages)) {
		entry := lock.Packages[name]
		if name != "" && !entry.Link && !npmHash.MatchString(entry.Integrity) { // "" is the project itself
			unprotected = append(unprotected, strings.TrimPrefix(name, "node_modules/"))
		}
	}
	return unprotected, nil
}

// UnprotectedPip returns the requirements without a version or a valid hash, in order. It refuses a file without any.
func UnprotectedPip(text []byte) ([]string, error) {
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
		invalid := func(hash string) bool { return !pipHash.MatchString(hash) }
		if !strings.Contains(words[0], "==") || len(hashes) == 0 || slices.ContainsFunc(hashes, invalid) {
			unprotected = append(unprotected, words[0])
		}
	}
	if count == 0 {
		return nil, errors.New("the lock has no requirement")
	}
	return unprotected, nil
}

// UnprotectedMaven returns the dependencies of a pom.xml that are not in hashes, the text of pom.sha256, and the lines
// of it without a valid hash. A pom.xml names no dependency of a dependency: e2e/tools/install compares all files.
func UnprotectedMaven(pom, hashes []byte) ([]string, error) {
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
		if !jarHash.MatchString(line) {
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
