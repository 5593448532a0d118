// Package lockfile finds the entries of lock files that no hash protects: a registry could give other content for them.
//
// It knows the two forms that leave the hash out where a registry did not give one: npm's package-lock.json, and pip's
// requirements. Go refuses a module without its line in go.sum. It reads no registry.
package lockfile

import (
	"encoding/json"
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
