// Package wave is a stub of Wave's Checkout API for businesses: sessions, search, the page where the payer pays, and
// signed webhooks. Package operatorstub describes the control paths and the steering by number.
//
// Each wallet has one country, one API key and one webhook. A session is open for 30 minutes. Two requests make two
// sessions, also with one client_reference, and each can be paid: then the effects list two payments. The key of an
// effect is the client_reference, or the session's id without one.
//
// The payer opens wave_launch_url, types a number, and confirms, cancels or closes. The number selects the outcome:
//
//	1001, 1002   the payment fails, webhook payment_failed; the session stays open for another try
//	1003         the payment stays in progress, and the session expires
//	1007         webhook completed, then a late payment_failed
//	others       as operatorstub lists; the faults are those of the page
//
// With restrict_payer_mobile that number also selects the fault of the request. An Idempotency-Key has no effect. There
// are no test numbers, no tokens and no refunds.
//
// Quirks:
//
//	nested_error    errors are {"error":{"code","message"}}
//	shared_secret   webhooks show Authorization: Bearer with the first secret instead of a signature
//	session_3s      a new session is open for 3 seconds
//
// POST /portal/test-event sends test.test_event to all webhooks, as the button of Wave's portal does.
//
// These choices are inferred, because no document states them:
//
//	cancel by the payer            expired and cancelled, a redirect to error_url, no webhook
//	session after POST .../expire  expired and processing; the response is 200 without a body
//	409 of a final session         code checkout-session-final
//	bad signature of a request     401 invalid-auth; a time more than 5 minutes off is bad
//	unknown field in a body        400 request-validation-error (client notes)
//	order of a search              oldest first, in all statuses
//	last_payment_error             stays after a later success
//	retries of webhooks            after 1, 5 and 30 minutes
//	codes of 403, 429, 500, 503    disabled-wallet, rate-limit-exceeded, internal-server-error, service-unavailable
//	wave_launch_url                has a query; the page is 404 without it, since the URL must be used as given
package wave
