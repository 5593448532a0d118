// Package e2e tells the gateway's whole stories: each file of stories/ is a script of requests and of what is to be seen
// from outside, in the answers, at the operator and in the merchant's inbox. README.md lists the words of the scripts.
//
// The stories run against the local run that the tests start, or against the one whose run.json E2E_RUN_JSON names. What
// a script cannot say, hundreds of parallel requests, killed processes and a merchant's failing server, stands in the Go
// tests beside them. Nothing of this package ships.
package e2e
