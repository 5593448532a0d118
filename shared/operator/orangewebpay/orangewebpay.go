// Package orangewebpay is the driver for Orange Money Web Payment, which has a payment page for the web channel.
//
// Orange refuses a second session for an order_id, and looks a payment up only by the token of its page. So the driver
// sends the payment once, and a lost response leaves it to a person. Its invariant: an outcome is NotApplied only by an
// error that Orange's own gateway is known to send before the application.
package orangewebpay

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// DriverName is the driver's name in the rows of the operator table.
const DriverName = "orangewebpay"

// maxURLLength is the longest address that Orange takes, in characters.
const maxURLLength = 120

// testSegment is the path segment of the test environment, which has a currency of its own.
const (
	testSegment  = "dev"
	testCurrency = "OUV"
)

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct {
	accounts *credentials.Reader
	client   *upstream.Client
	tokens   *upstream.Tokens
}

var (
	_ operator.Driver                = (*Driver)(nil)
	_ operator.StatusLookup          = (*Driver)(nil)
	_ operator.AccountDescriber      = (*Driver)(nil)
	_ operator.PaymentCallbackReader = (*Driver)(nil)
)

// New makes the driver. accounts are the platforms' accounts. It neither fetches nor connects yet. It needs no clock.
func New(
	accounts *credentials.Reader, client *upstream.Client, tokens *upstream.Tokens, _ func() time.Time,
) *Driver {
	return &Driver{accounts, client, tokens}
}

// The paths of an account's fields.
const (
	fieldClientID     = "client_id"
	fieldClientSecret = "client_secret"
	fieldMerchantKey  = "merchant_key"
	fieldSegment      = "segment"
)

// AccountFields implements operator.AccountDescriber.
func (d *Driver) AccountFields() []operator.AccountField {
	pay := []string{operator.AccountPay}
	return []operator.AccountField{
		{Path: "base_url", Identity: true, NeededBy: pay, Check: operator.CheckBaseURL},
		{Path: fieldSegment, Identity: true, NeededBy: pay, Check: checkSegment},
		{Path: fieldMerchantKey, Secret: true, Identity: true, NeededBy: pay, Check: operator.CheckHeaderText},
		{Path: fieldClientID, NeededBy: pay, Check: checkClientID},
		{Path: fieldClientSecret, Secret: true, NeededBy: pay, Check: operator.CheckHeaderText},
	}
}

// checkSegment accepts the test environment and the countries of the platform.
func checkSegment(text string) error {
	if segments := []string{testSegment, "ci", "bf", "cm", "sn"}; !slices.Contains(segments, text) {
		return errors.New("is not one of " + strings.Join(segments, ", "))
	}
	return nil
}

// checkClientID refuses a colon, which would end the id in the header.
func checkClientID(text string) error {
	if strings.Contains(text, ":") {
		return errors.New("has a colon")
	}
	return operator.CheckHeaderText(text)
}

// FindAccount implements operator.Driver.
func (d *Driver) FindAccount(ctx context.Context, platform, id string) (string, error) {
	return upstream.CheckPayAccount(ctx, d.accounts, platform, id, d.AccountFields())
}

// findAccount returns the account of a call. One account serves one country.
func (d *Driver) findAccount(ctx context.Context, call operator.Call) (credentials.Account, error) {
	account, err := upstream.FindPayAccount(ctx, d.accounts, call.Platform, call.AccountID, d.AccountFields())
	segment := account.Field(fieldSegment)
	if err == nil && segment != testSegment && !strings.EqualFold(segment, call.Country) {
		err = errors.New("the operator's account is for another country: change the route")
	}
	return account, err
}

// Charge implements operator.Driver: the platform has no charges.
func (d *Driver) Charge(context.Context, operator.ChargeCall) operator.Result {
	return upstream.NotOffered()
}

// SendSMS implements operator.Driver: the platform has no messages.
func (d *Driver) SendSMS(context.Context, operator.SMSCall) operator.Result {
	return upstream.NotOffered()
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

// Pay creates a payment page. Its Material is the page's token, which every lookup needs.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	for _, address := range [][2]string{{"return_url", call.ReturnURL}, {"cancel_url", call.CancelURL}} {
		if len(address[1]) > maxURLLength {
			return operator.PayResponse{Result: upstream.RefusedPart(address[0], "has more than 120 characters")}
		}
	}
	account, err := d.findAccount(ctx, call.Call)
	amount, amountErr := amountJSON(call.Amount, call.Currency)
	if len(call.NotifyURL) > maxURLLength {
		err = errors.Join(err, errors.New("the callback address has more than 120 characters"))
	}
	if err = errors.Join(err, amountErr); err != nil {
		return operator.PayResponse{Result: upstream.NotApplied(fault.IntegrationRejected, err)}
	}
	request := payRequest{
		MerchantKey: account.Field(fieldMerchantKey), Currency: call.Currency, OrderID: call.UpstreamKey,
		Amount: amount, ReturnURL: call.ReturnURL, CancelURL: call.CancelURL, NotifyURL: call.NotifyURL,
		Lang: call.Lang, Reference: call.Reference,
	}
	if account.Field(fieldSegment) == testSegment {
		request.Currency = testCurrency
	}
	x, notSent := d.send(ctx, account, "webpayment", strictjson.Marshal(request))
	if notSent.Fault != nil {
		return operator.PayResponse{Result: notSent}
	}
	response := readPage(x)
	response.HTTPStatus = x.Status
	return response
}

// amountJSON writes an amount as a number with the decimals of its currency. It is the same in each lookup.
func amountJSON(amount, currency string) (json.RawMessage, error) {
	exponent, _ := market.CurrencyExponent(currency)
	minor, err := money.Parse(amount, exponent)
	return json.RawMessage(money.Format(minor, exponent)), err
}

// readPage reads the response to a request for a page.
func readPage(x upstream.Exchange) operator.PayResponse {
	if result, without := x.WithoutResponse(); without {
		return operator.PayResponse{Result: result}
	}
	if !x.IsSuccess() {
		return operator.PayResponse{Result: classifyError(x)}
	}
	if doc, isDocument := x.Document(); isDocument {
		token, notifToken := upstream.Text(doc, "pay_token"), upstream.Text(doc, "notif_token")
		address := upstream.URL(doc, "payment_url")
		if token != "" && notifToken != "" && address != "" {
			return operator.PayResponse{
				Result: operator.Result{Outcome: operator.Succeeded}, Material: token,
				PayToken: token, PaymentURL: address, NotifToken: notifToken,
			}
		}
	}
	cause := fmt.Errorf("the operator's response %d lacks fields of a page", x.Status)
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
	doc, isDocument := x.Document()
	if !isDocument {
		return ""
	}
	read := func(path string) string { return upstream.TextOrNumber(doc, path) }
	return cmp.Or(read("code"), read("error.code"), read("error.error.code"))
}

// classifyError maps a response without success. It is NotApplied only by a code that was seen from Orange, because a
// payment that was released can be sent again.
func classifyError(x upstream.Exchange) operator.Result {
	code, cause := errorCode(x), fmt.Errorf("the operator responded %d", x.Status)
	switch {
	case code == duplicatedOrderID, x.Status == http.StatusConflict:
		return upstream.Duplicate(cause)
	case x.Status == http.StatusBadRequest && code == missingField,
		x.Status == http.StatusUnauthorized && code == expiredToken,
		x.Status == http.StatusNotFound && code == resourceNotFound:
		return upstream.NotApplied(fault.IntegrationRejected, cause)
	case x.Status == http.StatusTooManyRequests && code != "":
		return upstream.NotApplied(fault.OperatorUnavailable, cause)
	}
	return upstream.Unknown(cause)
}

// send makes one exchange with an access token. It forgets a token after a 401. It sends once more only after the error
// of an expired token, which Orange's gateway sends before the application. A result with a fault means that it sent
// nothing, because there is no token.
func (d *Driver) send(
	ctx context.Context, account credentials.Account, operation string, body []byte,
) (upstream.Exchange, operator.Result) {
	for isRetry := false; ; isRetry = true {
		token, noToken := d.token(ctx, account)
		if noToken.Fault != nil {
			return upstream.Exchange{}, noToken
		}
		x := d.client.Send(ctx, upstream.Request{
			Method: http.MethodPost, Body: body,
			URL:    account.BaseURL() + "/orange-money-webpay/" + account.Field(fieldSegment) + "/v1/" + operation,
			Header: map[string]string{"Authorization": "Bearer " + token},
		})
		d.accounts.RecordUse(account.Platform, account.Version, x.IsSuccess())
		code := errorCode(x)
		if x.Status == http.StatusUnauthorized && code != "" {
			d.tokens.Drop(tokenKey(account), token)
		}
		if isRetry || x.Status != http.StatusUnauthorized || code != expiredToken {
			return x, operator.Result{}
		}
	}
}

// tokenKey is the application that a token belongs to.
func tokenKey(account credentials.Account) string {
	return account.BaseURL() + " " + account.Field(fieldClientID)
}

// token returns an access token of the account's application.
func (d *Driver) token(ctx context.Context, account credentials.Account) (string, operator.Result) {
	isRefused := false
	token, err := d.tokens.Get(ctx, tokenKey(account), func(ctx context.Context) (string, time.Duration, error) {
		pair := account.Field(fieldClientID) + ":" + account.Field(fieldClientSecret)
		x := d.client.Send(ctx, upstream.Request{
			Method: http.MethodPost, URL: account.BaseURL() + "/oauth/v3/token",
			Body: []byte("grant_type=client_credentials"),
			Header: map[string]string{
				"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)),
				"Content-Type":  "application/x-www-form-urlencoded",
			},
		})
		_, isDocument := x.Document()
		isRefused = isDocument && x.Status >= 400 && x.Status <= 403
		return readToken(x)
	})
	if err == nil {
		return token, operator.Result{}
	}
	d.accounts.RecordUse(account.Platform, account.Version, false)
	return "", upstream.NoToken(isRefused, err)
}

// maxTokenSeconds is the longest known life of a token: 90 days.
const maxTokenSeconds = 7776000

// readToken reads the response to a token exchange. expires_in is a number or a text.
func readToken(x upstream.Exchange) (token string, lifetime time.Duration, err error) {
	doc, isDocument := x.Document()
	if !x.IsSuccess() || !isDocument {
		return "", 0, errors.Join(fmt.Errorf("the token exchange responded %d without a token", x.Status), x.Err)
	}
	token, _ = doc.OptionalText("access_token", upstream.MaxURLLength)
	seconds, err := strconv.Atoi(upstream.TextOrNumber(doc, "expires_in"))
	if operator.CheckToken(token) != nil || err != nil || seconds < 0 {
		return "", 0, errors.New("the token exchange responded without a token or its life")
	}
	return token, time.Duration(min(seconds, maxTokenSeconds)) * time.Second, nil
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

// LookUpPayment implements operator.StatusLookup. Without Material, because the response to the payment was lost, there
// is no lookup.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	account, err := d.findAccount(ctx, call.Call)
	amount, amountErr := amountJSON(call.Amount, call.Currency)
	if call.Material == "" {
		err = errors.Join(err, errors.New("the payment has no pay_token: its response was lost"))
	}
	if err = errors.Join(err, amountErr); err != nil {
		return operator.StatusResponse{Cause: err}
	}
	body := strictjson.Marshal(statusRequest{call.UpstreamKey, amount, call.Material})
	x, notSent := d.send(ctx, account, "transactionstatus", body)
	if notSent.Fault != nil {
		return operator.StatusResponse{Cause: notSent.Fault}
	}
	return readStatus(x, call.UpstreamKey)
}

func readStatus(x upstream.Exchange, orderID string) operator.StatusResponse {
	doc, isDocument := x.Document()
	if !x.IsSuccess() || !isDocument {
		cause := errors.Join(fmt.Errorf("the lookup responded %d without a status", x.Status), x.Err)
		return operator.StatusResponse{Cause: cause}
	}
	text := upstream.Text(doc, "status")
	status, known := statuses[text]
	switch {
	case text == "" || upstream.Text(doc, "order_id") != orderID:
		return operator.StatusResponse{Cause: errors.New("the lookup responded without this order's status")}
	case !known:
		return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	}
	report := operator.StatusReport{Status: status, OperatorReference: upstream.Text(doc, "txnid")}
	return operator.StatusResponse{StatusReport: report}
}

// ReadPaymentCallback implements operator.PaymentCallbackReader. notif_token is the only proof of a callback. Without
// it the callback counts as unread.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return operator.CallbackReport{}
	}
	report := operator.CallbackReport{NotifToken: upstream.Text(doc, "notif_token")}
	if report.NotifToken != "" {
		report.Status = statuses[upstream.Text(doc, "status")]
		report.OperatorReference = upstream.Text(doc, "txnid")
	}
	return report
}
