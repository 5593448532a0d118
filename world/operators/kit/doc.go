// Package kit is the kit for HTTP stubs of real operators' platforms. Each platform's stub is a package beside it. The
// kit is not part of the deployed gateway and moves no money.
//
// # How to write a stub
//
//  1. Describe the operator in a Spec: its operations, errors, faults, quirks and test numbers, each as a table.
//  2. Write one function Serve for each operation. The sources of the keys of a call are part of the table.
//  3. Write the functions that authorize a call and make a callback.
//  4. Return the Platform that New makes. The program that mounts its Handler strips the prefix.
//
// The kit has the token call (Grant), the pages of payers (Hosted), and the end of a payment with its callbacks
// (DecideAfter). The functions of a Spec and of Platform.After run under the platform's lock. They may use all methods
// of Platform, except Handler, Serve, Deliver, Locked, Close and Hash, and must not wait. A Transaction may be read and
// changed only there. The specification's own operator, package sandbox, adds what no other has (Extension).
//
// Effects are the truth of a test: an effect is listed if and only if it happened. Call AddEffect where the real
// platform would move money or send an SMS, also for a second time under one key. Decide calls it for a success.
//
// # Three ways to run it
//
// As a process, Handler serves HTTP: only it waits. In a test and in the simulator, Serve returns a response as a
// value, with its delay, and with the callbacks that come first, which Deliver sends. With its own clock, timers,
// randomness and Config.Post a platform does nothing by itself: every later event is a function that Config.After got.
// Config.Draw draws outcomes in place of the digits. The hazards are the promises that an operator breaks on request.
//
// # Steering
//
// The last four digits of the payer's number select the outcome. The table outcomes lists them.
//
// A Spec adds the operator's own test numbers, which are compared first. The faults of 1004, 1005, 1009 and 1010 apply
// to the first call of an operation under a key; later ones are ordinary. Scripts take precedence over numbers. The
// number that a payer types on a page selects the outcome of the payment, and the fault of the button.
//
// # Control paths
//
//	GET  /stub/v1/effects?key=    effects; key is the upstream key or the order id, and all effects without it
//	GET  /stub/v1/statement?day=  the effects of money as an operator's statement, CSV; of one UTC day or of all
//	GET  /stub/v1/calls?key=      {operation, key, order_id, status, at}; status 0 is a closed connection
//	POST /stub/v1/script          {"key","operation","calls":[...]}; no key or operation matches all. GET lists the
//	                              rest, DELETE with ?key= deletes the scripts of a key, and all without it
//	PUT  /stub/v1/quirks          {"name":true}; replaces the switches, GET lists them
//	POST /stub/v1/revoke-tokens   makes every token invalid
//
// A script's key may be the payer's number too. The modes of its calls are ok, slow, the faults, and twice: the request
// arrives twice, and the caller gets the second response. A fault is not applied, unless it has the suffix "-applied":
// then the call takes effect first. A fault of Spec.Applied takes effect, unless it has the suffix "-unapplied". All
// stubs know the faults cut, garbage, html, empty, 500, 503 and 429. A Spec adds others. A callback is in the list of
// calls under the operation "callback".
//
// All stubs with tokens know the quirks token_60s and token_3s, which shorten new tokens, and expires_in_text.
package kit
