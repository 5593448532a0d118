// Package operationtest is the test kit of the operations. It has two merchants, a stub operator with scripted
// behaviours, and a clock that only the test moves. Requests go through the real handler as events of API Gateway.
// Suite has the tests that the three operations share: repeats, parallel requests and crash points.
//
// It is for tests only. Its invariant: at the end of its test, each fixture searches its log lines and its stored
// entries for the secrets of the golden events.
package operationtest
