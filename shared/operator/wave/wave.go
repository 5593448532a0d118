// Package wave is the driver for Wave's checkout API, which has a payment page for the web channel.
//
// A payment is a checkout session with the order_id as client_reference. Wave creates a second session for a second
// request, so the driver searches before a retry. Its invariant: it creates no session for a payment that has one, and
// reports a status only if all sessions of the payment agree with it.
package wave

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// sessionsPath is the path of the checkout sessions (Wave's Checkout API).
const sessionsPath = "/v1/checkout/sessions"

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct {
	upstream.Base
	now func() time.Time
}

// New makes the driver. accounts are the platforms' accounts. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client, now func() time.Time) *Driver {
	return &Driver{upstream.Base{
		Accounts: accounts, Client: client, Operation: operator.AccountPay, Fields: accountFields(),
	}, now}
}

// sessionRequest is the request for a checkout session, in the order of Wave's documentation.
type sessionRequest struct {
	Amount     string `json:"amount"`
	Currency   string `json:"currency"`
	SuccessURL string `json:"success_url"`
	ErrorURL   string `json:"error_url"`
	Reference  string `json:"client_reference"`
	OnlyPayer  string `json:"restrict_payer_mobile,omitempty"` // E.164 with "+"
}

// Pay creates a checkout session. On a retry it searches the payment's sessions first: it returns the open one, and
// creates one only if there is none.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	request, invalid := buildRequest(call)
	if invalid != nil {
		return operator.PayResponse{Result: upstream.NotSent(invalid)}
	}
	if call.MayRepeat {
		sessions, notFound, err := d.search(ctx, call.Call)
		if !notFound {
			return reuseSession(sessions, err, request)
		}
	}
	read := func(x upstream.Exchange) operator.PayResponse { return readCreated(x, request) }
	return d.SendPayment(ctx, call, buildPayment, isKeyRefused, read)
}

// CheckPayment implements operator.PaymentChecker.
func (d *Driver) CheckPayment(ctx context.Context, call operator.PayCall) *fault.Fault {
	return d.CheckPaymentBy(ctx, call, buildPayment)
}

func buildPayment(_ credentials.Account, call operator.PayCall) (upstream.Request, *fault.Fault) {
	request, invalid := buildRequest(call)
	body := strictjson.Marshal(request)
	return upstream.Request{Method: http.MethodPost, URL: sessionsPath, Body: body}, invalid
}

// buildRequest makes the request for a payment. The gateway has checked the merchant's values.
func buildRequest(call operator.PayCall) (sessionRequest, *fault.Fault) {
	exponent, _ := market.CurrencyExponent(call.Currency)
	minor, err := money.Parse(call.Amount, exponent)
	if err != nil {
		return sessionRequest{}, upstream.NotApplied(fault.IntegrationRejected, err).Fault
	}
	request := sessionRequest{
		Amount: money.Format(minor, exponent), Currency: call.Currency, SuccessURL: call.ReturnURL,
		ErrorURL: call.CancelURL, Reference: call.UpstreamKey,
	}
	if call.MSISDN != "" {
		country, _ := market.ByAlpha2(call.Country)
		payer, err := msisdn.Parse(call.MSISDN, country)
		if err != nil {
			return sessionRequest{}, upstream.NotApplied(fault.IntegrationRejected, err).Fault
		}
		request.OnlyPayer = payer.E164()
	}
	return request, nil
}

// reuseSession responds to a retry with the open session of an earlier attempt. Any other session, and a failed search,
// leave the payment to its lookup.
func reuseSession(sessions []session, err error, request sessionRequest) operator.PayResponse {
	if err != nil {
		return operator.PayResponse{Result: upstream.Unknown(err)}
	}
	if s := decidingSession(sessions); s.isOpenFor(request) {
		return s.page()
	}
	return operator.PayResponse{Result: upstream.Duplicate(logsafe.New("the payment has a session that is not open"))}
}

// readCreated reads the response to a new session.
func readCreated(x upstream.Exchange, request sessionRequest) operator.PayResponse {
	if !x.IsSuccess() {
		return operator.PayResponse{Result: classifyError(x)}
	}
	if doc, isDocument := x.Document(); isDocument {
		if s := readSession(doc, ""); s.isOpenFor(request) {
			return s.page()
		}
	}
	cause := logsafe.Errorf("the operator's response %d is not an open session of the payment", x.Status)
	return operator.PayResponse{Result: upstream.Unknown(cause)}
}

// keyRefusals are the codes with which Wave refuses an API key.
var keyRefusals = []string{
	"missing-auth-header", "invalid-auth", "api-key-not-provided", "no-matching-api-key", "api-key-revoked",
}

// isKeyRefused reports whether Wave refused the API key, before it processed the request.
func isKeyRefused(x upstream.Exchange) bool {
	return x.IsUnauthorized() && slices.Contains(keyRefusals, errorCode(x))
}

// errorCode reads the code of an error, which is at the root or in an object "error"; "" if there is none.
func errorCode(x upstream.Exchange) string { return x.ErrorCode("code", "error.code") }

// classifyError maps a response without success. A refusal needs Wave's own form: the page of a firewall proves
// nothing.
func classifyError(x upstream.Exchange) operator.Result {
	code := errorCode(x)
	cause := logsafe.Errorf("the operator responded %d %s", x.Status, logsafe.Code(code))
	result := upstream.Unknown(cause)
	switch {
	case x.Status == http.StatusConflict:
		result = upstream.Duplicate(cause)
	case x.Status == http.StatusBadRequest && code == codeInvalid, isKeyRefused(x),
		x.Status == http.StatusForbidden && code != "":
		result = upstream.NotApplied(fault.IntegrationRejected, cause)
	case x.Status == http.StatusTooManyRequests && code != "":
		result = upstream.NotApplied(fault.OperatorUnavailable, cause)
	}
	result.Code = operator.KnownCode(code, code == codeInvalid || slices.Contains(keyRefusals, code))
	return result
}

// codeInvalid is the code of a request that Wave does not take.
const codeInvalid = "request-validation-error"

// LookUpPayment implements operator.StatusLookup. It searches all sessions of the payment: an earlier attempt may have
// created another one than that of the page.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	sessions, notFound, err := d.search(ctx, call.Call)
	if err != nil {
		return operator.StatusResponse{OrderNotFound: notFound, Cause: err}
	}
	found := decidingSession(sessions)
	if found.status == "" {
		return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	}
	return operator.StatusResponse{StatusReport: found.report()}
}

// search returns the sessions of a payment, at least one. With an error, notFound is true if Wave reports that there is
// none.
func (d *Driver) search(ctx context.Context, call operator.Call) (sessions []session, notFound bool, err error) {
	path := sessionsPath + "/search?client_reference=" + url.QueryEscape(call.UpstreamKey)
	x, unsent := d.Send(ctx, call, upstream.Get(path), upstream.Exchange.IsUnauthorized)
	if unsent != nil {
		return nil, false, unsent
	}
	return readSessions(x, call.UpstreamKey)
}

func readSessions(x upstream.Exchange, reference string) (sessions []session, notFound bool, err error) {
	doc, isDocument := x.Document()
	if !x.IsSuccess() || !isDocument {
		notFound = isDocument && x.Status == http.StatusNotFound && errorCode(x) == "checkout-session-not-found"
		return nil, notFound, x.LookupCause("the search", errorCode(x))
	}
	const maxSessions = 50
	items := doc.Objects("result", maxSessions)
	isReadable := doc.FirstFault() == nil
	for _, item := range items {
		if s := readSession(item, ""); s.reference == reference || s.reference == "" {
			sessions = append(sessions, s)
		}
	}
	if len(sessions) > 0 {
		return sessions, false, nil
	}
	doc.Text("result", 1) // an absent list is missing, and an empty one is of another type
	f := doc.FirstFault()
	isEmptyList := isReadable && len(items) == 0 && f != nil && f.Kind == fault.InvalidPart
	return nil, isEmptyList, logsafe.New("the search found no session of the payment")
}
