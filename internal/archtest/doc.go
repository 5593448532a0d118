// Package archtest holds the rules of this project that no linter knows, as plain Go tests: which package may import
// which, where the clock and the environment may be read, that money never meets a float, that decisions are written
// down, that template.yaml and the functions agree.
//
// A rule is a function over one loaded package that returns the offences it finds; every rule is proved on a small
// program that breaks it. It has nothing that is not a test. Its invariant: a rule that cannot be checked fails.
package archtest
