// Package operationtest is the test kit of the operations: two merchants, an operator that does what a script says, a
// clock that stands still, and requests that go in at the real edge, as API Gateway's event, and come out as its answer.
//
// It never ships. Its invariant: every world, when its test ends, has looked through the lines that were logged and
// the entries that were stored for the secrets of the golden events, whatever else the test was about.
package operationtest
