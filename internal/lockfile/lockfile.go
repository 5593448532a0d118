// Package lockfile finds the entries of npm's package-lock.json that no hash protects: a registry could give other
// content for them. It reads no registry.
//
// Its test is the gate over every lock file of the checkout. It also knows pip's requirements, and Maven's pom.xml with
// the hashes in pom.sha256 beside it. Go refuses a module without its line in go.sum.
package lockfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var npmHash = regexp.MustCompile(`^sha512-[A-Za-z0-9+/]{86}==$`)

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
