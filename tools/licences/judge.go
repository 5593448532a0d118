package main

import (
	"fmt"
	"slices"
	"strings"
)

// judgeAll says what is wrong, a line each: dependencies that are not allowed, and exceptions that nothing needs.
func judgeAll(found []dependency, grants []grant, exceptions []exception) []string {
	var faults []string
	used := make([]bool, len(exceptions))
	for _, d := range found {
		why := judge(d, grants)
		if why == "" {
			continue
		}
		row := slices.IndexFunc(exceptions, func(e exception) bool {
			return e.Kind == d.Kind && e.Name == d.Name && e.Says == d.Licence
		})
		if row >= 0 && (exceptions[row].Ships || !d.Ships) {
			used[row] = true
			continue
		}
		faults = append(faults, fmt.Sprintf("%s %s %s (%s): %s", d.Kind, d.Name, d.Version, d.List, why))
	}
	for i, e := range exceptions {
		if !used[i] {
			faults = append(faults, fmt.Sprintf("nothing needs the exception of %s %s that says %q", e.Kind, e.Name, e.Says))
		}
	}
	return faults
}

// judge says why a dependency is not allowed, "" where it is.
func judge(d dependency, grants []grant) string {
	if d.Licence == "" {
		return "names no licence that can be read"
	}
	ok, err := allowed(d.Licence, func(licence string) bool {
		return slices.ContainsFunc(grants, func(g grant) bool {
			return strings.EqualFold(g.Licence, licence) && (g.Ships || !d.Ships)
		})
	})
	switch {
	case err != nil:
		return fmt.Sprintf("its licence %q is none that is known", d.Licence)
	case ok:
		return ""
	case d.Ships:
		return fmt.Sprintf("its licence %q is not granted to what ships", d.Licence)
	default:
		return fmt.Sprintf("its licence %q is not granted", d.Licence)
	}
}

// spellings are the names that package managers know beside SPDX's, in small letters.
var spellings = map[string]string{
	"apache 2":                                 "Apache-2.0",
	"apache 2.0":                               "Apache-2.0",
	"apache license 2.0":                       "Apache-2.0",
	"apache license, version 2.0":              "Apache-2.0",
	"apache software license":                  "Apache-2.0",
	"the apache license, version 2.0":          "Apache-2.0",
	"the apache software license, version 2.0": "Apache-2.0",
	"3-clause bsd license":                     "BSD-3-Clause",
	"bsd":                                      "LicenseRef-BSD",
	"bsd license":                              "LicenseRef-BSD",
	"bsd style":                                "LicenseRef-BSD",
	"the bsd license":                          "LicenseRef-BSD",
	"epl 2.0":                                  "EPL-2.0",
	"gpl2 w/ cpe":                              "GPL-2.0-only WITH Classpath-exception-2.0",
	"isc license (iscl)":                       "ISC",
	"mit license":                              "MIT",
	"the mit license":                          "MIT",
	"mozilla public license 2.0 (mpl 2.0)":     "MPL-2.0",
	"public domain":                            "LicenseRef-Public-Domain",
	"python software foundation license":       "PSF-2.0",
	"license :: osi approved :: apache software license": "Apache-2.0",
}

// spelled gives a licence's name SPDX's form where it has one.
func spelled(name string) string {
	name = strings.Join(strings.Fields(name), " ")
	if known := spellings[strings.ToLower(name)]; known != "" {
		return known
	}
	return name
}

// joined makes one expression of several names.
func joined(names []string, operator string) string {
	var parts []string
	for _, name := range names {
		part := spelled(name)
		if len(names) > 1 && (strings.Contains(part, " OR ") || strings.Contains(part, " AND ")) {
			part = "(" + part + ")"
		}
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " "+operator+" ")
}
