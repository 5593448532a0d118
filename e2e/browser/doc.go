// Package browser tests the payment page of a local run in a headless Chromium, with the keyboard only. axe-core
// checks every state of the page in both languages. It also reads the published reference. make e2e-browser runs it.
//
// The tests control the browser with a few commands of its DevTools protocol, over a pipe. They add nothing else to
// the page, so the page's content policy applies, and the page's scripts are disabled.
package browser
