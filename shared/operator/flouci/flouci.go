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
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
const DriverName = "flouci"

// currency is the only currency. Flouci counts its thousandths, and names none.
const currency = "TND"

const (
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
	accounts *credentials.Reader
	client   *upstream.Client
	now      func() time.Time
}

var (
	_ operator.Driver           = (*Driver)(nil)
	_ operator.StatusLookup     = (*Driver)(nil)
	_ operator.AccountDescriber = (*Driver)(nil)
)

// New makes the driver. accounts are the platforms' accounts. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client, now func() time.Time) *Driver {
	return &Driver{accounts, client, now}
}

// AccountFields implements operator.AccountDescriber. The public key identifies the application that has the payments.
func (d *Driver) AccountFields() []operator.AccountField {
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

// FindAccount implements operator.Driver.
func (d *Driver) FindAccount(ctx context.Context, platform, id string) (string, error) {
	return upstream.CheckPayAccount(ctx, d.accounts, platform, id, d.AccountFields())
}

// Charge implements operator.Driver: Flouci has no charges.
func (d *Driver) Charge(context.Context, operator.ChargeCall) operator.Result {
	return upstream.NotOffered()
}

// SendSMS implements operator.Driver: Flouci has no messages.
func (d *Driver) SendSMS(context.Context, operator.SMSCall) operator.Result {
	return upstream.NotOffered()
}

// send makes one exchange with the account of a call. An error means that nothing was sent.
func (d *Driver) send(
	ctx context.Context, call operator.Call, method, path string, body []byte,
) (upstream.Exchange, error) {
	account, err := upstream.FindPayAccount(ctx, d.accounts, call.Platform, call.AccountID, d.AccountFields())
	if err != nil {
		return upstream.Exchange{}, err
	}
	keys := account.Field(fieldPublicKey) + ":" + account.Field(fieldPrivateKey)
	x := d.client.Send(ctx, upstream.Request{
		Method: method, URL: account.BaseURL() + "/api/v2/" + path, Body: body,
		Header: map[string]string{"Authorization": "Bearer " + keys},
	})
	d.accounts.RecordUse(account.Platform, account.Version, x.IsSuccess())
	return x, nil
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

// Pay creates a payment page. Its Material is Flouci's id and the time until which a failure does not count.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	exponent, _ := market.CurrencyExponent(currency)
	minor, err := money.Parse(call.Amount, exponent)
	if call.Currency != currency {
		err = errors.New("the platform has no other currency than TND")
	}
	if err != nil {
		return operator.PayResponse{Result: upstream.NotApplied(fault.IntegrationRejected, err)}
	}
	body := strictjson.Marshal(payRequest{
		Amount: strconv.FormatInt(minor, 10), SuccessURL: call.ReturnURL, FailURL: call.CancelURL,
		CallbackURL: call.NotifyURL, TrackingID: call.UpstreamKey, AcceptCard: true,
		Seconds: int(sessionLife / time.Second),
	})
	x, err := d.send(ctx, call.Call, http.MethodPost, "generate_payment", body)
	if err != nil {
		return operator.PayResponse{Result: upstream.NotApplied(fault.IntegrationRejected, err)}
	}
	response := readPage(x, call.UpstreamKey, d.now().Add(sessionLife+failureMargin))
	response.HTTPStatus = x.Status
	return response
}

// readPage reads the response to a request for a page. A failure does not count before mayFailAt.
func readPage(x upstream.Exchange, key string, mayFailAt time.Time) operator.PayResponse {
	if result, without := x.WithoutResponse(); without {
		return operator.PayResponse{Result: result}
	}
	cause := fmt.Errorf("the operator responded %d", x.Status)
	doc, isDocument := x.Document()
	if !isDocument {
		return operator.PayResponse{Result: upstream.Unknown(cause)}
	}
	id, address := upstream.Text(doc, "result.payment_id"), upstream.URL(doc, "result.link")
	isOurs := isKeyOrAbsent(doc, key)
	switch message := upstream.Text(doc, "result.message"); {
	case x.IsSuccess() && isID(id) && address != "" && isOurs:
		sum := sha256.Sum256([]byte(key + "\n" + id)) // Flouci has no token of notifications
		return operator.PayResponse{
			Result:   operator.Result{Outcome: operator.Succeeded},
			Material: id + " " + strconv.FormatInt(mayFailAt.Unix(), 10),
			PayToken: id, PaymentURL: address, NotifToken: hex.EncodeToString(sum[:16]),
		}
	case message != "" && id == "" && (x.Status == http.StatusBadRequest || x.Status == http.StatusUnauthorized ||
		x.Status == http.StatusForbidden):
		return operator.PayResponse{Result: upstream.NotApplied(fault.IntegrationRejected, cause)}
	case message != "" && id == "" && x.Status == http.StatusTooManyRequests:
		return operator.PayResponse{Result: upstream.NotApplied(fault.OperatorUnavailable, cause)}
	}
	return operator.PayResponse{Result: upstream.Unknown(cause)}
}

// isID reports whether a text can be an id of Flouci's in Material.
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

// LookUpPayment implements operator.StatusLookup. Without Material, because the response to the payment was lost, there
// is no lookup.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	id, deadline, isOurs := strings.Cut(call.Material, " ")
	if id == "" {
		return operator.StatusResponse{Cause: errors.New("the payment has no id: its response was lost")}
	}
	x, err := d.send(ctx, call.Call, http.MethodGet, "verify_payment/"+url.PathEscape(id), nil)
	if err = cmp.Or(err, x.Err); err != nil {
		return operator.StatusResponse{Cause: err}
	}
	seconds, err := strconv.ParseInt(deadline, 10, 64)
	found := readStatus(x, call.UpstreamKey, err == nil && !d.now().Before(time.Unix(seconds, 0)))
	// Only the check of an account looks up an id without a time. A payment that Flouci forgot must not expire.
	found.OrderNotFound = !isOurs && isNotFound(x)
	return found
}

// isNotFound reports whether Flouci itself does not know an id.
func isNotFound(x upstream.Exchange) bool {
	doc, isDocument := x.Document()
	return isDocument && x.Status == http.StatusNotFound && upstream.Text(doc, "result.message") != ""
}

// readStatus reads the response to a lookup. A failure is pending unless mayFail.
func readStatus(x upstream.Exchange, key string, mayFail bool) operator.StatusResponse {
	doc, isDocument := x.Document()
	if !x.IsSuccess() || !isDocument {
		cause := errors.Join(fmt.Errorf("the lookup responded %d without a status", x.Status), x.Err)
		return operator.StatusResponse{Cause: cause}
	}
	text := upstream.Text(doc, "result.status")
	status, isKnown := statuses[text]
	amount, hasAmount := readAmount(doc)
	switch {
	case text == "" || !isKeyOrAbsent(doc, key) || !isSuccessful(x.Body):
		return operator.StatusResponse{Cause: errors.New("the lookup responded without this payment's status")}
	case !isKnown:
		return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	case status == ledger.Successful && !hasAmount:
		return operator.StatusResponse{Cause: errors.New("the lookup responded with a success without its amount")}
	case status != ledger.Successful && !mayFail:
		status = ledger.Pending
	}
	return operator.StatusResponse{StatusReport: operator.StatusReport{Status: status, Amount: amount}}
}

// isSuccessful reports whether a document has the flag of a successful lookup, without which the rest may not be read.
func isSuccessful(body []byte) bool {
	var flags struct {
		Success bool `json:"success"`
	}
	return json.Unmarshal(body, &flags) == nil && flags.Success
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
