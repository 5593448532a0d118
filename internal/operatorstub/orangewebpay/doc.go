// Package orangewebpay is a stub of Orange Money Web Payment: the token call, the payment, its lookup, its page and its
// notification. On the page the payer types a number and a code. Package operatorstub describes the control paths and
// the steering by number.
//
// Each country is a segment of the path with its own account and merchant key. A payment is INITIATED until the payer
// confirms it, then PENDING, and two seconds later SUCCESS or FAILED. Its page and its pay_token live for 10 minutes.
// After that a payment without a confirmation is EXPIRED, also if the payer cancelled it. An order_id is never free
// again: a repeat is refused with code 1204. The key of an effect is the order_id.
//
// The number on the page selects the outcome. Its faults are those of the button, because the API has none. A code
// has six digits; 000000 is wrong. There are no test numbers.
//
// The notification has no order_id and comes once. It is not sent to plain http on an IP address, except with
// Credentials.LocalURLs.
//
// Faults of scripts are HTTP statuses, or codes: "42" is 401 with code 42. incomplete is 201 without a pay_token.
//
// Quirks:
//
//	nested_error      errors are {"error":{"code","message","description"}}
//	no_notification   no notification is sent
//	failure_word      the notification says FAILURE instead of FAILED
//	notify_expired    a confirmation after the page's life is notified as EXPIRED
//	same_debit_failed a second payment of one number and amount within 10 minutes is FAILED
//	page_3s           a new page lives for 3 seconds
//
// These choices are inferred, or recalled by others, because no document states them:
//
//	1204                         HTTP 400
//	wrong amount or pay_token    400 code 22 on the lookup
//	wrong merchant_key           400 code 22
//	required fields              all of the document's example
//	token of another country     404 code 60; an unknown token is 401 code 41, an expired or revoked one code 42
//	wrong client or grant_type   401 code 41, 400 code 22
//	wrong Content-Type           415 as a page
//	cancel on the page           the page is closed; the status stays INITIATED until EXPIRED
package orangewebpay
