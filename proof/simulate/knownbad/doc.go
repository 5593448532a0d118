// Package knownbad proves that the simulator finds bugs. It has a table of deliberate bugs of functions/ and shared/,
// and a test that runs the simulator with each of them until an invariant is violated.
//
// Each row of the table replaces a short text of a function. The test builds one program with all rows by the -overlay
// flag of the go command. The overlay adds a bad copy of the function. The function calls the copy while the row is
// active. So the code that ships has no switch, each variant is a small difference that can be read, and one build
// serves all. The program itself has the build tag knownbad, because it is useless without the overlay. Build-tagged
// copies of whole files would not follow the code; a text that no longer matches fails a test.
//
// "make knownbad" hunts for all variants, and prints which seed found each of them. It tries the seeds of
// testdata/seeds.txt first. A seed becomes stale when the simulator draws other choices. That only costs a search from
// seed 1, so record new seeds after such a change:
//
//	make knownbad RECORD=1
//
// A variant's histories may have forced choices in common. Their labels are those of package simulate; a label that no
// history draws fails a test.
//
// Its invariants: each text matches exactly once, the overlay compiles, and a seed counts only if the code that ships
// passes it.
package knownbad
