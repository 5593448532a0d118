// Package pawapay is the driver for the deposits of the pawaPay Merchant API, version 2: one account for the wallets of
// several operators and countries. The payer approves a deposit on the phone. It is looked up by our UUID.
//
// It keeps no state of a transaction. It sends a deposit once, and a second time only if pawaPay refused an access
// token that has been renewed since. Its invariant: an outcome is Succeeded, Refused or NotApplied only if pawaPay's
// documented response, or the lack of a connection, proves it (docs/operators/pawapay.md).
package pawapay

import (
	"context"
	"slices"
	"strings"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

const depositPath = "/v2/deposits"

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct{ upstream.Base }

// New makes the driver. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client) *Driver {
	fields := append(operator.BasicAccountFields(), upstream.CallbackSecretField(operator.AccountPay))
	return &Driver{upstream.Base{
		Accounts: accounts, Client: client, Operation: operator.AccountPay, Fields: fields,
	}}
}

// VerifyStaticCallback implements operator.StaticCallbackVerifier by the secret in the path. It does not check a
// signature of pawaPay: a lookup confirms every callback.
func (d *Driver) VerifyStaticCallback(ctx context.Context, callback operator.StaticCallback) (bool, error) {
	return d.VerifyCallback(ctx, callback, nil)
}

// isTokenRefused reports whether pawaPay refused the access token, before it processed the request.
func isTokenRefused(x upstream.Exchange) bool {
	code := failureCode(x)
	return x.IsRefused() && (code == "NO_AUTHENTICATION" || code == "AUTHENTICATION_ERROR")
}

func failureCode(x upstream.Exchange) string { return x.ErrorCode("failureReason.failureCode") }

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
