package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAllowed(t *testing.T) {
	granted := func(licence string) bool {
		return slices.Contains([]string{"MIT", "Apache-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"}, licence)
	}
	cases := []struct {
		expression string
		ok, broken bool
	}{
		{"MIT", true, false},
		{"AGPL-3.0", false, false},
		{"MIT OR AGPL-3.0", true, false},
		{"MIT AND AGPL-3.0", false, false},
		{"AGPL-3.0 OR MIT AND Apache-2.0", true, false},
		{"(AGPL-3.0 OR MIT) AND BUSL-1.1", false, false},
		{"AGPL-3.0 AND (MIT OR Apache-2.0)", false, false},
		{"GPL-2.0-only WITH Classpath-exception-2.0", true, false},
		{"GPL-2.0-only", false, false},
		{"MIT WITH Commons-Clause", false, false},
		{"", false, true},
		{"MIT Apache-2.0", false, true},
		{"(MIT", false, true},
		{"MIT OR", false, true},
		{"MIT)", false, true},
		{"See LICENSE", false, true},
		{"MIT; commercial", false, true},
	}
	for _, c := range cases {
		ok, err := allowed(c.expression, granted)
		if ok != c.ok || (err != nil) != c.broken {
			t.Errorf("%q: %v, %v; want %v, broken %v", c.expression, ok, err, c.ok, c.broken)
		}
	}
}

func TestJudge(t *testing.T) {
	rules := []grant{{"MIT", true, "-"}, {"MPL-2.0", false, "-"}}
	rows := []exception{{"npm", "odd", "Odd 1", false, "-"}, {"go", "shipped", "Odd 2", true, "-"}}
	cases := []struct {
		name string
		d    dependency
		want string
	}{
		{"granted", dependency{Licence: "MIT", Ships: true}, ""},
		{"granted to tools", dependency{Licence: "MPL-2.0"}, ""},
		{"not to what ships", dependency{Licence: "MPL-2.0", Ships: true}, "not granted to what ships"},
		{"unknown licence", dependency{Licence: "BUSL-1.1"}, "not granted"},
		{"unknown text", dependency{Licence: "Do as you are told"}, "none that is known"},
		{"silent", dependency{}, "names no licence"},
		{"excused", dependency{Kind: "npm", Name: "odd", Licence: "Odd 1"}, ""},
		{"excused for what it said before", dependency{Kind: "npm", Name: "odd", Licence: "Odd 9"}, "none that is known"},
		{"excused as a tool, and ships", dependency{Kind: "npm", Name: "odd", Licence: "Odd 1", Ships: true}, "none that is known"},
		{"excused where it ships", dependency{Kind: "go", Name: "shipped", Licence: "Odd 2", Ships: true}, ""},
		{"of another kind", dependency{Kind: "go", Name: "odd", Licence: "Odd 1"}, "none that is known"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			faults := slices.DeleteFunc(judgeAll([]dependency{c.d}, rules, rows), func(fault string) bool {
				return strings.HasPrefix(fault, "nothing needs")
			})
			if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)) {
				t.Errorf("found %q, want %q", faults, c.want)
			}
		})
	}
	if faults := judgeAll(nil, rules, rows); len(faults) != 2 {
		t.Errorf("two exceptions without a use gave %q", faults)
	}
}

// TestPolicyHasReasons asks a reason of every row, and that every spelling is one of a licence that is granted.
func TestPolicyHasReasons(t *testing.T) {
	for _, g := range grants {
		if len(g.Why) < 10 {
			t.Errorf("the grant of %s has no reason", g.Licence)
		}
	}
	for _, e := range exceptions {
		if len(e.Why) < 10 {
			t.Errorf("the exception of %s has no reason", e.Name)
		}
	}
	for name, licence := range spellings {
		if name != strings.ToLower(name) || judge(dependency{Licence: licence}, grants) != "" {
			t.Errorf("the spelling %q leads to nothing", name)
		}
	}
}

func TestPythonLicence(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"expression", "License-Expression: MIT OR Apache-2.0\nLicense: other\n", "MIT OR Apache-2.0"},
		{"name", "License: The MIT License\nClassifier: License :: OSI Approved :: BSD License\n", "MIT"},
		{"whole text, and a class", "License: Copyright (c) somebody\n        Permission: granted\nClassifier: License :: OSI Approved :: MIT License\n", "MIT"},
		{"several classes", "Classifier: License :: OSI Approved :: BSD License\nClassifier: License :: OSI Approved :: Apache Software License\n", "LicenseRef-BSD AND Apache-2.0"},
		{"a class that says nothing", "Classifier: License :: OSI Approved\n", ""},
		{"proprietary", "License: Proprietary\nClassifier: License :: Other/Proprietary License\n", "Other/Proprietary License"},
		{"a licence in the description", "Name: x\n\nLicense: MIT\n", ""},
	}
	for _, c := range cases {
		if got := pythonLicence(headers(c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestBrackets(t *testing.T) {
	texts, rest := brackets("(A) (B (C)) the rest (g:a:1 - address)")
	if !slices.Equal(texts, []string{"A", "B (C)"}) || rest != "the rest (g:a:1 - address)" {
		t.Errorf("%q, %q", texts, rest)
	}
	if texts, _ := brackets("(never closed"); texts != nil {
		t.Errorf("%q", texts)
	}
}

func TestNpmPackages(t *testing.T) {
	top := t.TempDir()
	write(t, top, "web/package-lock.json", `{"packages": {"": {"license": "UNLICENSED"}, "node_modules/a": {"version": "1.0.0", "license": "MIT"},
		"node_modules/a/node_modules/@b/c": {"version": "2.0.0"}, "node_modules/d": {"version": "3.0.0", "license": {"type": "MIT"}}, "node_modules/own": {"link": true}}}`)
	write(t, top, "web/node_modules/a/node_modules/@b/c/package.json", `{"license": "ISC"}`)
	found, err := npmPackages(context.Background(), top, []string{"web/package-lock.json"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range found {
		got = append(got, d.Name+" "+d.Version+" "+d.Licence)
	}
	slices.Sort(got)
	if want := []string{"@b/c 2.0.0 ISC", "a 1.0.0 MIT", "d 3.0.0 "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLicenceFiles(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"LICENSE", "licence.md", "UNLICENSE", "COPYING.LESSER", "LICENSE-MIT", "LICENSES.txt", "NOTICE", "license.go", "licensee.txt"} {
		write(t, top, name, "text")
	}
	var got []string
	for _, file := range licenceFiles(top) {
		got = append(got, filepath.Base(file))
	}
	if want := []string{"COPYING.LESSER", "LICENSE", "LICENSE-MIT", "LICENSES.txt", "UNLICENSE", "licence.md"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUnreadListIsRefused adds a list that nobody reads.
func TestUnreadListIsRefused(t *testing.T) {
	top := t.TempDir()
	if _, err := run(context.Background(), top, nil, "git", "init", "-q"); err != nil {
		t.Fatal(err)
	}
	write(t, top, "web/yarn.lock", "")
	write(t, top, "web/testdata/yarn.lock", "")
	if _, err := collect(context.Background(), top); err == nil || !strings.Contains(err.Error(), "web/yarn.lock lists dependencies") {
		t.Errorf("yarn.lock gave %v", err)
	}
}

// write makes a file and the folders above it.
func write(t *testing.T, top, name, text string) {
	t.Helper()
	file := filepath.Join(top, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
