// Package imports checks the rules of this project that no linter knows: no floating-point numbers in what ships, no
// mutable package variables, documented exports, and documented decisions. It also compares template.yaml with the
// code. .golangci.yml has the rules that linters know.
//
// A rule is a function over one loaded package that returns offences. Each rule is proved on small programs that break
// it. The package has only tests. A rule that cannot be checked fails.
package imports
