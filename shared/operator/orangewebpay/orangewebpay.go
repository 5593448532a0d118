// Package orangewebpay is the driver for Orange Money Web Payment, which has a payment page for the web channel.
//
// Orange refuses a second session for an order_id, and looks a payment up only by the token of its page. So the driver
// sends the payment once, and a lost response leaves it to a person. Its invariant: an outcome is NotApplied only by an
// error that Orange's own gateway is known to send before the application.
package orangewebpay

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
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

// maxURLLength is the longest address that Orange takes, in characters.
const maxURLLength = 120

// testSegment is the path segment of the test environment, which has a currency of its own.
const (
	testSegment  = "dev"
	testCurrency = "OUV"
)

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct{ upstream.Base }

// New makes the driver. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client, tokens *upstream.Tokens) *Driver {
	return &Driver{upstream.Base{
		Accounts: accounts, Client: client, Tokens: tokens, Operation: operator.AccountPay, Fields: accountFields(),
		Credentials: upstream.ClientCredentials{
			Path: "/oauth/v3/token", ID: "client_id", Secret: "client_secret", RenewBefore: 5 * time.Minute,
		},
	}}
}

// The paths of an account's fields.
const (
	fieldMerchantKey = "merchant_key"
	fieldSegment     = "segment"
)

func accountFields() []operator.AccountField {
	pay := []string{operator.AccountPay}
	return []operator.AccountField{
		{Path: "base_url", Identity: true, NeededBy: pay, Check: operator.CheckBaseURL},
		{Path: fieldSegment, Identity: true, NeededBy: pay, Check: checkSegment, CountryOf: countryOf},
		{Path: fieldMerchantKey, Secret: true, Identity: true, NeededBy: pay, Check: operator.CheckHeaderText},
		{Path: "client_id", NeededBy: pay, Check: upstream.CheckBasicName},
		{Path: "client_secret", Secret: true, NeededBy: pay, Check: operator.CheckHeaderText},
	}
}

// checkSegment accepts the test environment and the countries of the platform.
func checkSegment(text string) error {
	if segments := []string{testSegment, "ci", "bf", "cm", "sn"}; !slices.Contains(segments, text) {
		return errors.New("is not one of " + strings.Join(segments, ", "))
	}
	return nil
}

// countryOf returns the country (alpha-2) of a segment, "" for the test environment.
func countryOf(segment string) string {
	if segment == testSegment {
		return ""
	}
	return strings.ToUpper(segment)
}

// newRequest makes a request to the segment of an account.
func newRequest(account credentials.Account, operation string, body []byte) upstream.Request {
	path := "/orange-money-webpay/" + account.Field(fieldSegment) + "/v1/" + operation
	return upstream.Request{Method: http.MethodPost, URL: path, Body: body}
}

// payRequest is the request for a payment page, in the order of Orange's documentation.
type payRequest struct {
	MerchantKey string          `json:"merchant_key"`
	Currency    string          `json:"currency"`
	OrderID     string          `json:"order_id"`
	Amount      json.RawMessage `json:"amount"`
	ReturnURL   string          `json:"return_url"`
	CancelURL   string          `json:"cancel_url"`
	NotifyURL   string          `json:"notif_url"`
	Lang        string          `json:"lang"`
	Reference   string          `json:"reference"`
}

// Pay creates a payment page. Its DriverData is the page's token, which every lookup needs.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	return d.SendPayment(ctx, call, buildPayment, isTokenExpired, readPage)
}

// CheckPayment implements operator.PaymentChecker.
func (d *Driver) CheckPayment(ctx context.Context, call operator.PayCall) *fault.Fault {
	return d.CheckPaymentBy(ctx, call, buildPayment)
}

// buildPayment makes the request for a page. One account serves one country.
func buildPayment(account credentials.Account, call operator.PayCall) (upstream.Request, *fault.Fault) {
	for _, address := range [][2]string{{"return_url", call.ReturnURL}, {"cancel_url", call.CancelURL}} {
		if len(address[1]) > maxURLLength {
			return upstream.Request{}, fault.BrokenRule(address[0], logsafe.New("has more than 120 characters"))
		}
	}
	amount, err := amountJSON(call.Amount, call.Currency)
	if len(call.NotifyURL) > maxURLLength {
		err = errors.Join(err, logsafe.New("the callback address has more than 120 characters"))
	}
	if err != nil {
		return upstream.Request{}, &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	request := payRequest{
		MerchantKey: account.Field(fieldMerchantKey), Currency: call.Currency, OrderID: call.UpstreamKey,
		Amount: amount, ReturnURL: call.ReturnURL, CancelURL: call.CancelURL, NotifyURL: call.NotifyURL,
		Lang: call.Lang, Reference: call.Reference,
	}
	if account.Field(fieldSegment) == testSegment {
		request.Currency = testCurrency
	}
	return newRequest(account, "webpayment", strictjson.Marshal(request)), nil
}

// amountJSON writes an amount as a number with the decimals of its currency. It is the same in each lookup.
func amountJSON(amount, currency string) (json.RawMessage, error) {
	exponent, _ := market.CurrencyExponent(currency)
	minor, err := money.Parse(amount, exponent)
	return json.RawMessage(money.Format(minor, exponent)), err
}

// readPage reads the response to a request for a page.
func readPage(x upstream.Exchange) operator.PayResponse {
	if !x.IsSuccess() {
		return operator.PayResponse{Result: classifyError(x)}
	}
	if doc, isDocument := x.Document(); isDocument {
		token, notifToken := upstream.Text(doc, "pay_token"), upstream.Text(doc, "notif_token")
		address := upstream.URL(doc, "payment_url")
		if token != "" && notifToken != "" && address != "" {
			return operator.PayResponse{
				Result: operator.Result{Outcome: operator.Succeeded}, DriverData: token,
				PayToken: token, PaymentURL: address, NotifToken: notifToken,
			}
		}
	}
	cause := logsafe.Errorf("the operator's response %d lacks fields of a page", x.Status)
	return operator.PayResponse{Result: upstream.Unknown(cause)}
}

// The codes of Orange's errors.
const (
	missingField      = "23"
	expiredToken      = "42"
	resourceNotFound  = "60" // another segment, or the application may not use the product
	duplicatedOrderID = "1204"
)

// errorCode reads the code of an error, which is at the root or nested; "" if there is none.
func errorCode(x upstream.Exchange) string {
	return x.ErrorCode("code", "error.code", "error.error.code")
}

// isTokenExpired reports whether Orange's gateway refused the access token as expired, before the application.
func isTokenExpired(x upstream.Exchange) bool {
	return x.IsUnauthorized() && errorCode(x) == expiredToken
}

// classifyError maps a response without success. It is NotApplied only by a code that was seen from Orange, because a
// payment that was released can be sent again.
func classifyError(x upstream.Exchange) operator.Result {
	code := errorCode(x)
	cause := logsafe.Errorf("the operator responded %d %s", x.Status, logsafe.Code(code))
	result := upstream.Unknown(cause)
	switch {
	case code == duplicatedOrderID, x.Status == http.StatusConflict:
		result = upstream.Duplicate(cause)
	case x.Status == http.StatusBadRequest && code == missingField,
		isTokenExpired(x), x.Status == http.StatusNotFound && code == resourceNotFound:
		result = upstream.NotApplied(fault.IntegrationRejected, cause)
	case x.Status == http.StatusTooManyRequests && code != "":
		result = upstream.NotApplied(fault.OperatorUnavailable, cause)
	}
	known := []string{missingField, expiredToken, resourceNotFound, duplicatedOrderID}
	result.Code = operator.KnownCode(code, slices.Contains(known, code))
	return result
}

// statuses are Orange's statuses of a payment.
var statuses = map[string]ledger.Status{
	"INITIATED": ledger.Pending,
	"PENDING":   ledger.Pending,
	"SUCCESS":   ledger.Successful,
	"FAILED":    ledger.Failed,
	"EXPIRED":   ledger.Expired,
}

// statusRequest is the request for a payment's status.
type statusRequest struct {
	OrderID  string          `json:"order_id"`
	Amount   json.RawMessage `json:"amount"`
	PayToken string          `json:"pay_token"`
}

// LookUpPayment implements operator.StatusLookup. Without DriverData, because the response to the payment was lost,
// there is no lookup. Orange's error for an unknown pay_token is not documented, so only the check of an account finds
// no payment.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	amount, err := amountJSON(call.Amount, call.Currency)
	if call.DriverData == "" {
		err = errors.Join(err, logsafe.New("the payment has no pay_token: its response was lost"))
	}
	if err != nil {
		return operator.StatusResponse{Cause: err}
	}
	return d.SendLookup(ctx, call.Call, newLookup(call, amount))
}

func newLookup(call operator.StatusCall, amount json.RawMessage) upstream.Lookup {
	body := strictjson.Marshal(statusRequest{call.UpstreamKey, amount, call.DriverData})
	return upstream.Lookup{
		Build: func(account credentials.Account) (upstream.Request, *fault.Fault) {
			return newRequest(account, "transactionstatus", body), nil
		},
		IsNotFound: func(x upstream.Exchange) bool {
			isUnknown := x.Status == http.StatusBadRequest || x.Status == http.StatusNotFound
			isOurFault := slices.Contains([]string{"", missingField, resourceNotFound}, errorCode(x))
			return call.IsAccountCheck() && isUnknown && !isOurFault
		},
		Read: func(doc *strictjson.Reader) (operator.StatusReport, bool) {
			word := upstream.Text(doc, "status")
			report := operator.StatusReport{Status: statuses[word], OperatorReference: upstream.Text(doc, "txnid")}
			return report, word != "" && upstream.Text(doc, "order_id") == call.UpstreamKey
		},
	}
}

// ReadPaymentCallback implements operator.PaymentCallbackReader. notif_token is the only proof of a callback. Without
// it the callback counts as unread.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	doc := upstream.CallbackDocument(body)
	report := operator.CallbackReport{NotifToken: upstream.Text(doc, "notif_token")}
	if report.NotifToken != "" {
		report.Status = statuses[upstream.Text(doc, "status")]
		report.OperatorReference = upstream.Text(doc, "txnid")
	}
	return report
}
