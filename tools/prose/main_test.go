package main

import "testing"

// TestDeclarations finds a name in each place where Go code can declare one.
func TestDeclarations(t *testing.T) {
	for code, want := range map[string]string{
		"const banned = 1":                              "name",
		"type banned int":                               "type",
		"type t struct{ banned int }":                   "name",
		"type t interface{ banned() }":                  "func",
		"type t[banned any] int":                        "name",
		"func banned() {}":                              "func",
		"func f(banned int) {}":                         "name",
		"func f() (banned int) { return }":              "name",
		"func (banned t) f() {}":                        "name",
		"func (t) banned() {}":                          "func",
		"func f() { banned := 1; _ = banned }":          "name",
		"func f() { for banned := range 3 {} }":         "name",
		"func f() { banned: for { break banned } }":     "name",
		"import banned \"fmt\"":                         "name",
		"func f() { for _, banned := range \"ab\" {} }": "name",
	} {
		items, err := read("x.go", "package p\n"+code)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, i := range items {
			if i.Texts[0].Text == "banned" {
				kinds = append(kinds, i.Kind)
			}
		}
		if len(kinds) != 1 || kinds[0] != want {
			t.Errorf("%s declares names of the kinds %q, want %q", code, kinds, want)
		}
	}
}
