// Package flouci is the driver for Flouci's payment API, which has a payment page for the web channel
// (docs/operators/flouci.md).
//
// Flouci makes a new payment for each request, and looks one up only by its own id. So the driver sends a payment once,
// and a lost response leaves it to a person. The form of its callbacks is not documented: each one leads to a lookup,
// because the driver reads none. Its invariant: no payment fails before its page has ended, because the
// payer may try again.
package flouci

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// currency is the only currency. Flouci counts its thousandths, and names none.
const currency = "TND"

const (
	apiPath = "/api/v2/"
	// sessionLife is how long a page can be paid. The driver sets it.
	sessionLife = 15 * time.Minute
	// failureMargin is added to sessionLife before a failure counts: for other clocks, and for a last attempt.
	failureMargin = 5 * time.Minute
)

// The paths of an account's fields.
const (
	fieldPublicKey  = "public_key"
	fieldPrivateKey = "private_key"
)

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct {
	upstream.Base
	now func() time.Time
}

// New makes the driver. accounts are the platforms' accounts. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client, now func() time.Time) *Driver {
	return &Driver{upstream.Base{
		Accounts: accounts, Client: client, Operation: operator.AccountPay, Fields: accountFields(),
		Header: func(account credentials.Account) map[string]string {
			keys := account.Field(fieldPublicKey) + ":" + account.Field(fieldPrivateKey)
			return map[string]string{"Authorization": "Bearer " + keys}
		},
	}, now}
}

// accountFields are the fields of an account. The public key identifies the application that has the payments.
func accountFields() []operator.AccountField {
	pay := []string{operator.AccountPay}
	return []operator.AccountField{
		{Path: "base_url", Identity: true, NeededBy: pay, Check: operator.CheckBaseURL},
		{Path: fieldPublicKey, Identity: true, NeededBy: pay, Check: checkKey},
		{Path: fieldPrivateKey, Secret: true, NeededBy: pay, Check: checkKey},
	}
}

// checkKey refuses a colon, which separates the two keys in the header.
func checkKey(text string) error {
	return cmp.Or(upstream.CheckBasicName(text), operator.CheckToken(text))
}

// payRequest is the request for a payment page, in the order of Flouci's documentation.
type payRequest struct {
	Amount      string `json:"amount"` // in thousandths
	SuccessURL  string `json:"success_link"`
	FailURL     string `json:"fail_link"`
	CallbackURL string `json:"webhook"`
	TrackingID  string `json:"developer_tracking_id"`
	AcceptCard  bool   `json:"accept_card"`
	Seconds     int    `json:"session_timeout_secs"`
}

// Pay creates a payment page. Its DriverData is Flouci's id and the time until which a failure does not count.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	read := func(x upstream.Exchange) operator.PayResponse {
		return readPage(x, call.UpstreamKey, d.now().Add(sessionLife+failureMargin))
	}
	return d.SendPayment(ctx, call, buildPayment, isKeyRefused, read)
}

// CheckPayment implements operator.PaymentChecker.
func (d *Driver) CheckPayment(ctx context.Context, call operator.PayCall) *fault.Fault {
	return d.CheckPaymentBy(ctx, call, buildPayment)
}

// buildPayment makes the request for a page.
func buildPayment(_ credentials.Account, call operator.PayCall) (upstream.Request, *fault.Fault) {
	exponent, _ := market.CurrencyExponent(currency)
	minor, err := money.Parse(call.Amount, exponent)
	if call.Currency != currency {
		err = logsafe.New("the platform has no other currency than TND")
	}
	if err != nil {
		return upstream.Request{}, &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	return upstream.Request{
		Method: http.MethodPost, URL: apiPath + "generate_payment", Body: strictjson.Marshal(payRequest{
			Amount: strconv.FormatInt(minor, 10), SuccessURL: call.ReturnURL, FailURL: call.CancelURL,
			CallbackURL: call.NotifyURL, TrackingID: call.UpstreamKey, AcceptCard: true,
			Seconds: int(sessionLife / time.Second),
		}),
	}, nil
}

// hasMessage reports whether a response is an error in Flouci's own form: with a message, and without a payment or its
// page.
func hasMessage(x upstream.Exchange) bool {
	doc, isDocument := x.Document()
	return isDocument && upstream.Text(doc, "result.message") != "" &&
		upstream.Text(doc, "result.payment_id") == "" && upstream.URL(doc, "result.link") == ""
}

// isKeyRefused reports whether Flouci refused the keys, before it processed the request.
func isKeyRefused(x upstream.Exchange) bool { return x.IsUnauthorized() && hasMessage(x) }

// readPage reads the response to a request for a page. A flag of success that is not true beside a page contradicts it:
// the payer may be able to pay. A failure does not count before mayFailAt.
func readPage(x upstream.Exchange, key string, mayFailAt time.Time) operator.PayResponse {
	cause := logsafe.Errorf("the operator responded %d", x.Status)
	result := upstream.Unknown(cause)
	doc, isDocument := x.Document()
	if !isDocument {
		return operator.PayResponse{Result: result}
	}
	id, address := upstream.Text(doc, "result.payment_id"), upstream.URL(doc, "result.link")
	refusals := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}
	switch {
	case x.IsSuccess() && isID(id) && address != "" && isKeyOrAbsent(doc, key) && !hasFailed(doc):
		return operator.PayResponse{
			Result:     operator.Result{Outcome: operator.Succeeded},
			DriverData: id + " " + strconv.FormatInt(mayFailAt.Unix(), 10),
			PayToken:   id, PaymentURL: address, NotifToken: upstream.NotifToken(key, id),
		}
	case hasMessage(x) && slices.Contains(refusals, x.Status):
		result = upstream.NotApplied(fault.IntegrationRejected, cause)
	case hasMessage(x) && x.Status == http.StatusTooManyRequests:
		result = upstream.NotApplied(fault.OperatorUnavailable, cause)
	}
	return operator.PayResponse{Result: result}
}

// isID reports whether a text can be an id of Flouci's in DriverData.
func isID(text string) bool {
	const maxLength = 128
	return text != "" && len(text) <= maxLength && !strings.Contains(text, " ")
}

// isKeyOrAbsent reports whether a response names the key of the payment, or none.
func isKeyOrAbsent(doc *strictjson.Reader, key string) bool {
	found := upstream.TextOrNumber(doc, "result.developer_tracking_id")
	return found == "" || found == key
}

// statuses are Flouci's statuses of a payment. Others, such as PREAUTH_SUCCESS, prove nothing.
var statuses = map[string]ledger.Status{
	"PENDING": ledger.Pending, "SUCCESS": ledger.Successful, "FAILURE": ledger.Failed, "EXPIRED": ledger.Expired,
}

// LookUpPayment implements operator.StatusLookup. Without DriverData, because the response to the payment was lost,
// there is no lookup. A payment that Flouci forgot must not expire: only the check of an account finds none.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	if call.DriverData == "" {
		return operator.StatusResponse{Cause: logsafe.New("the payment has no id: its response was lost")}
	}
	return d.SendLookup(ctx, call.Call, newLookup(call, d.now()))
}

func newLookup(call operator.StatusCall, now time.Time) upstream.Lookup {
	id, deadline, _ := strings.Cut(call.DriverData, " ")
	return upstream.Lookup{
		Build: upstream.Get(apiPath + "verify_payment/" + url.PathEscape(id)),
		IsNotFound: func(x upstream.Exchange) bool {
			return call.IsAccountCheck() && x.Status == http.StatusNotFound && hasMessage(x)
		},
		Read: func(doc *strictjson.Reader) (operator.StatusReport, bool) {
			seconds, err := strconv.ParseInt(deadline, 10, 64)
			mayFail := err == nil && !now.Before(time.Unix(seconds, 0))
			isOurs := isKeyOrAbsent(doc, call.UpstreamKey) && upstream.Text(doc, "result.status") != ""
			return readStatus(doc, mayFail), isOurs && isSuccessful(doc)
		},
	}
}

// readStatus reads a payment. A failure is pending unless mayFail. A success without its amount proves nothing.
func readStatus(doc *strictjson.Reader, mayFail bool) operator.StatusReport {
	status := statuses[upstream.Text(doc, "result.status")]
	amount, hasAmount := readAmount(doc)
	switch {
	case status == ledger.Successful && !hasAmount:
		return operator.StatusReport{}
	case status.Final() && status != ledger.Successful && !mayFail:
		status = ledger.Pending
	}
	return operator.StatusReport{Status: status, Amount: amount}
}

// isSuccessful reports whether a document has the flag of a successful lookup, without which the rest may not be read.
func isSuccessful(doc *strictjson.Reader) bool {
	var flags struct {
		Success bool `json:"success"`
	}
	return json.Unmarshal(doc.Canonical(), &flags) == nil && flags.Success
}

// hasFailed reports whether the response to a payment has a flag success, at its root or in its result, that is not
// true.
func hasFailed(doc *strictjson.Reader) bool {
	flags := struct {
		Success *bool `json:"success"`
		Result  struct {
			Success *bool `json:"success"`
		} `json:"result"`
	}{}
	isFalse := func(flag *bool) bool { return flag != nil && !*flag }
	return json.Unmarshal(doc.Canonical(), &flags) != nil || isFalse(flags.Success) || isFalse(flags.Result.Success)
}

// readAmount returns the amount of a response as a decimal; false if there is none.
func readAmount(doc *strictjson.Reader) (string, bool) {
	minor, err := money.ParseMinorUnits(upstream.TextOrNumber(doc, "result.amount"))
	if err != nil {
		return "", false
	}
	exponent, _ := market.CurrencyExponent(currency)
	return money.Format(minor, exponent), true
}
