package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// npmPackage is what a lock or a package says of one.
type npmPackage struct {
	Version string
	License any // a text; older packages have other forms, which are not read
	Link    bool
}

// npmPackages reads the packages of each lock, those for other systems too. Where the lock says nothing, the installed
// package may.
func npmPackages(_ context.Context, top string, lists []string) ([]dependency, error) {
	var found []dependency
	for _, list := range lists {
		text, err := os.ReadFile(filepath.Join(top, list))
		if err != nil {
			return nil, err
		}
		var lock struct{ Packages map[string]npmPackage }
		if err := json.Unmarshal(text, &lock); err != nil {
			return nil, fmt.Errorf("%s: %w", list, err)
		}
		if lock.Packages == nil {
			return nil, fmt.Errorf("%s is no lock of npm 7 or later", list)
		}
		for place, row := range lock.Packages {
			name, installed := afterLast(place, "node_modules/")
			if !installed || row.Link {
				continue // ours
			}
			licence, _ := row.License.(string)
			if licence == "" {
				licence = installedLicence(filepath.Join(top, filepath.Dir(list), place, "package.json"))
			}
			found = append(found, dependency{Kind: "npm", Name: name, Version: row.Version, List: list, Licence: spelled(licence)})
		}
	}
	return found, nil
}

// installedLicence reads the licence of an installed package, "" where none can be read.
func installedLicence(name string) string {
	var row npmPackage
	text, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(text, &row) != nil {
		return ""
	}
	licence, _ := row.License.(string)
	return licence
}

// afterLast is what follows the last occurrence of a separator.
func afterLast(text, separator string) (string, bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return "", false
	}
	return text[at+len(separator):], true
}
