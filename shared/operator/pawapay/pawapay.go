// Package pawapay is the driver for the deposits of the pawaPay Merchant API, version 2: one account for the wallets of
// several operators and countries. The payer approves a deposit on the phone. It is looked up by our UUID.
//
// It keeps no state of a transaction. It sends a deposit once, and a second time only if pawaPay refused an access
// token that has been renewed since. Its invariant: an outcome is Succeeded, Refused or NotApplied only if pawaPay's
// documented response, or the lack of a connection, proves it (docs/operators/pawapay.md).
package pawapay

import (
	"context"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

// DriverName is the driver's name in the rows of the operator table.
const DriverName = "pawapay"

const (
	depositPath         = "/v2/deposits"
	fieldAccessToken    = "access_token"
	fieldCallbackSecret = "callback_secret"
)

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct {
	accounts *credentials.Reader
	client   *upstream.Client
}

var (
	_ operator.Driver                 = (*Driver)(nil)
	_ operator.StatusLookup           = (*Driver)(nil)
	_ operator.PaymentCallbackReader  = (*Driver)(nil)
	_ operator.StaticCallbackVerifier = (*Driver)(nil)
	_ operator.AccountDescriber       = (*Driver)(nil)
)

// New makes the driver. It neither fetches nor connects yet. This driver needs no clock.
func New(accounts *credentials.Reader, client *upstream.Client, _ func() time.Time) *Driver {
	return &Driver{accounts, client}
}

// AccountFields implements operator.AccountDescriber.
func (d *Driver) AccountFields() []operator.AccountField { return accountFields() }

func accountFields() []operator.AccountField {
	return append(operator.BasicAccountFields(), operator.AccountField{
		Path: fieldCallbackSecret, Secret: true, NeededBy: []string{operator.AccountPay},
		Check: upstream.CheckCallbackSecret,
	})
}

// FindAccount implements operator.Driver.
func (d *Driver) FindAccount(ctx context.Context, platform, id string) (string, error) {
	return upstream.CheckPayAccount(ctx, d.accounts, platform, id, accountFields())
}

// Charge implements operator.Driver. pawaPay has no charges.
func (d *Driver) Charge(context.Context, operator.ChargeCall) operator.Result {
	return upstream.NotOffered()
}

// SendSMS implements operator.Driver. pawaPay has no messages.
func (d *Driver) SendSMS(context.Context, operator.SMSCall) operator.Result {
	return upstream.NotOffered()
}

// VerifyStaticCallback implements operator.StaticCallbackVerifier by the secret in the path. It does not check a
// signature of pawaPay: a lookup confirms every callback. If the check fails, it reads the account once more, because
// the secret may have been renewed.
func (d *Driver) VerifyStaticCallback(ctx context.Context, callback operator.StaticCallback) (bool, error) {
	if _, err := d.accounts.Routes(ctx); err != nil {
		return false, err // the secret cannot be read
	}
	account, err := d.accounts.Find(ctx, callback.Platform, callback.AccountID)
	if err != nil {
		return false, nil // there is no such account
	}
	if hasSecret(account, callback.PathSecret) {
		return true, nil
	}
	renewed, changed := d.accounts.RefreshAfterRefusal(ctx, account)
	return changed && hasSecret(renewed, callback.PathSecret), nil
}

func hasSecret(account credentials.Account, received string) bool {
	secret := account.Field(fieldCallbackSecret)
	return upstream.CheckCallbackSecret(secret) == nil &&
		subtle.ConstantTimeCompare([]byte(secret), []byte(received)) == 1
}

// exchange sends a request of an account, and sends it once more if pawaPay refused an access token that has been
// renewed since. A fault means that nothing was sent.
func (d *Driver) exchange(
	ctx context.Context, call operator.Call, r upstream.Request,
) (upstream.Exchange, credentials.Account, *fault.Fault) {
	account, err := upstream.FindPayAccount(ctx, d.accounts, call.Platform, call.AccountID, accountFields())
	if err != nil {
		return upstream.Exchange{}, account, &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	x := d.send(ctx, account, r)
	if code := failureCode(x); code != "NO_AUTHENTICATION" && code != "AUTHENTICATION_ERROR" || !isUnauthorized(x) {
		return x, account, nil
	}
	if renewed, changed := d.accounts.RefreshAfterRefusal(ctx, account); changed {
		return d.send(ctx, renewed, r), renewed, nil
	}
	return x, account, nil
}

func (d *Driver) send(ctx context.Context, account credentials.Account, r upstream.Request) upstream.Exchange {
	r.URL = account.BaseURL() + r.URL
	r.Header = map[string]string{"Authorization": "Bearer " + account.Field(fieldAccessToken)}
	return d.client.Send(ctx, r)
}

// isUnauthorized reports whether pawaPay refused our credentials or our rights.
func isUnauthorized(x upstream.Exchange) bool {
	return x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden
}

// failureCode returns the failureCode of a response; "" if it has none. A code has capital letters and underscores, so
// it can be logged.
func failureCode(x upstream.Exchange) string {
	response, isDocument := x.Document()
	if !isDocument {
		return ""
	}
	code := upstream.Text(response, "failureReason.failureCode")
	if strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return ""
	}
	return code
}

// provider returns pawaPay's code of a wallet; "" for one that it does not reach. needsOTP is true if the payer must
// generate a code before the payment.
func provider(operatorName, country string) (code string, needsOTP bool) {
	codes := []string{
		"mtn CI MTN_MOMO_CIV", "mtn CM MTN_MOMO_CMR",
		"orange CI ORANGE_CIV", "orange CD ORANGE_COD", "orange CM ORANGE_CMR", "orange SN ORANGE_SEN",
		"orange BF ORANGE_BFA", "moov BF MOOV_BFA",
		"airtel CD AIRTEL_COD", "vodacom CD VODACOM_MPESA_COD", "free SN FREE_SEN",
	}
	wallet := strings.ToLower(operatorName) + " " + strings.ToUpper(country) + " "
	i := slices.IndexFunc(codes, func(line string) bool { return strings.HasPrefix(line, wallet) })
	if i < 0 {
		return "", false
	}
	code = strings.TrimPrefix(codes[i], wallet)
	return code, code == "ORANGE_BFA"
}
