// Package terminal finds out whether a file is a terminal, and how wide it is.
//
// It writes nothing. On a system without such a query no file is a terminal.
package terminal
