// Package active names the deliberate bug that is active in a test program built with the overlay of known-bad
// variants. Only files of that overlay import it, so no program that ships contains it.
//
// Its invariant: without Use no bug is active.
package active

var variant string

// Use makes one variant active, and ends the variant before; "" is the code as it ships. Call it between two histories.
func Use(name string) { variant = name }

// Is reports whether a variant is active.
func Is(name string) bool { return variant == name }
