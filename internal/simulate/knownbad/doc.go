// Package knownbad proves that the simulator finds bugs. It has a table of deliberate bugs of functions/ and shared/,
// and a test that runs the simulator with each of them until an invariant is violated.
//
// Each row of the table replaces a short text of a function. The test builds one program with all rows by the -overlay
// flag of the go command. The overlay adds a bad copy of the function. The function calls the copy while the row is
// active. So the code that ships has no switch, each variant is a small difference that can be read, and one build
// serves all. The program itself has the build tag knownbad, because it is useless without the overlay. Build-tagged
// copies of whole files would not follow the code; a text that no longer matches fails a test.
//
// Its invariants: each text matches exactly once, the overlay compiles, and a seed counts only if the code that ships
// passes it.
package knownbad
