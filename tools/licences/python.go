package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// locked is a line of a lock that names a package, its version and perhaps a condition.
var locked = regexp.MustCompile(`(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)==([^ ;\\\n]+)( ; )?`)

// separators of a Python package's name: all mean the same.
var separators = regexp.MustCompile(`[-_.]+`)

// pythonPackages reads the packages of each lock as e2e/tools/install installs them, and of uv, which it brings itself.
func pythonPackages(ctx context.Context, top string, lists []string) ([]dependency, error) {
	var found []dependency
	for _, list := range lists {
		name := strings.TrimSuffix(filepath.Base(list), ".lock")
		if _, err := run(ctx, top, nil, "e2e/tools/install", name); err != nil {
			return nil, fmt.Errorf("the packages of %s: %w", list, err)
		}
		lock, err := os.ReadFile(filepath.Join(top, list))
		if err != nil {
			return nil, err
		}
		folder := filepath.Join(top, ".local", "tools", name)
		if same, err := os.ReadFile(filepath.Join(folder, "installed.lock")); err != nil || !bytes.Equal(same, lock) {
			return nil, fmt.Errorf("%s is not what %s says: remove it, and let e2e/tools/install make it anew", folder, list)
		}
		installed, err := environment(folder, list)
		if err != nil {
			return nil, err
		}
		for _, row := range locked.FindAllStringSubmatch(string(lock), -1) {
			d, ok := installed[canonical(row[1])]
			if !ok && row[3] != "" { // a condition follows: it is for other systems, and nothing here tells its licence
				d, ok = dependency{Kind: "python", Name: canonical(row[1]), Version: row[2], List: list}, true
			}
			if !ok || d.Version != row[2] {
				return nil, fmt.Errorf("%s names %s %s, but installed is %q", list, row[1], row[2], d.Version)
			}
			found = append(found, d)
		}
	}
	installers, err := filepath.Glob(filepath.Join(top, ".local", "tools", "uv-*"))
	if err != nil {
		return nil, err
	}
	for _, folder := range installers {
		installed, err := environment(folder, "e2e/tools/install")
		if err != nil {
			return nil, err
		}
		found = append(found, installed["uv"])
	}
	return found, nil
}

// environment reads what is installed in one, by name.
func environment(folder, list string) (map[string]dependency, error) {
	files, err := filepath.Glob(filepath.Join(folder, "lib", "python*", "site-packages", "*.dist-info", "METADATA"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no package installed (%w)", folder, err)
	}
	found := map[string]dependency{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		said := headers(string(text))
		name := canonical(first(said["Name"]))
		found[name] = dependency{Kind: "python", Name: name, Version: first(said["Version"]), List: list, Licence: pythonLicence(said)}
	}
	return found, nil
}

// headers reads the fields of a METADATA file; of a field over several lines, the first.
func headers(text string) map[string][]string {
	said := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if name, value, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, " ") {
			said[name] = append(said[name], strings.TrimSpace(value))
		}
	}
	return said
}

// pythonLicence takes the most exact of what a package says: an SPDX expression, else a licence's name, else the classes
// that it puts itself in, all of which hold.
func pythonLicence(said map[string][]string) string {
	if expression := first(said["License-Expression"]); expression != "" {
		return expression
	}
	if name := spelled(first(said["License"])); known(name) {
		return name
	}
	var names []string
	for _, class := range said["Classifier"] {
		parts := strings.Split(class, " :: ")
		if parts[0] == "License" && class != "License :: OSI Approved" {
			names = append(names, parts[len(parts)-1])
		}
	}
	if len(names) == 0 {
		return spelled(first(said["License"]))
	}
	return joined(names, "AND")
}

// known tells whether a text is an expression of granted licences, more exact than a class.
func known(licence string) bool {
	return licence != "LicenseRef-BSD" && judge(dependency{Licence: licence}, grants) == ""
}

// canonical gives a package's name the one form of its many.
func canonical(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// first is the first of some values, "" of none.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
