// Package browser drives a headless Chromium over the payment page of a real local run, with the keyboard alone, as
// purchasers do who use no mouse; axe-core looks at every state of the page in both languages. make e2e-browser runs it.
//
// The browser is spoken to over a pipe in its own DevTools protocol, of which a handful of commands is enough. Nothing is
// put into the page but by that protocol, so the page's policy holds, and its scripts are switched off.
package browser
