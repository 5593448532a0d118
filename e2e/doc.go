// Package e2e tests the whole gateway from outside. Each file of stories/ is a script of requests and of expected
// responses, operator effects and notifications. README.md lists the commands of the scripts.
//
// The stories run against a local run that the tests start, or against the one whose run.json E2E_RUN_JSON names. The
// Go tests cover what a script cannot express: hundreds of parallel requests, killed processes, a failing merchant
// server. Nothing in this package is deployed.
package e2e
