package wave

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

// maxSignatureAge is how far the time of a signature may be from now.
const maxSignatureAge = 5 * time.Minute

// The paths of an account's secrets. Two webhook secrets are valid at once, so that one can be renewed while Wave signs
// with the other.
const (
	fieldFirstWebhook  = "webhook_secrets.first"
	fieldSecondWebhook = "webhook_secrets.second"
)

// countryOf returns the country (alpha-2) of the wallet of an API key, "" for a key of another form than "wave_sn_...".
func countryOf(key string) string {
	rest, isKey := strings.CutPrefix(key, "wave_")
	if country, _, found := strings.Cut(rest, "_"); isKey && found && len(country) == 2 {
		return strings.ToUpper(country)
	}
	return ""
}

func accountFields() []operator.AccountField {
	basic := operator.BasicAccountFields()
	for i := range basic {
		if basic[i].Path == "access_token" {
			basic[i].CountryOf = countryOf
		}
	}
	return append(basic,
		upstream.CallbackSecretField(operator.AccountPay),
		operator.AccountField{Path: fieldFirstWebhook, Secret: true, Check: operator.CheckHeaderText},
		operator.AccountField{Path: fieldSecondWebhook, Secret: true, Check: operator.CheckHeaderText},
	)
}

// ReadPaymentCallback implements operator.PaymentCallbackReader. Only a completed session is final. After a failed
// attempt the session stays open. Any other event of a payment leads to a lookup.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	doc := upstream.CallbackDocument(body)
	event := doc.Text("type", upstream.MaxFieldLength)
	if doc.FirstFault() != nil || !doc.HasObject("data") {
		return operator.CallbackReport{}
	}
	s := readSession(doc, "data.")
	report := operator.CallbackReport{StatusReport: s.report(), OrderID: s.reference}
	if s.id != "" && s.reference != "" {
		report.NotifToken = s.notifToken()
	}
	switch {
	case event == "checkout.session.completed" && s.status.Final():
	case event == "checkout.session.payment_failed" && s.status != "":
		report.Status = ledger.Pending
	default:
		report.Status = ""
	}
	return report
}

// VerifyStaticCallback implements operator.StaticCallbackVerifier by the secret in the path. If the account has a
// webhook secret, it also requires Wave's signature, or the secret itself as a bearer: the wallet's webhook decides
// which.
func (d *Driver) VerifyStaticCallback(ctx context.Context, callback operator.StaticCallback) (bool, error) {
	return d.VerifyCallback(ctx, callback, func(account credentials.Account) bool {
		first, second := account.Field(fieldFirstWebhook), account.Field(fieldSecondWebhook)
		signature, authorization := callback.Header("Wave-Signature"), callback.Header("Authorization")
		return first == "" && second == "" ||
			d.isSigned(signature, first, callback.Body) || d.isSigned(signature, second, callback.Body) ||
			isBearer(authorization, first) || isBearer(authorization, second)
	})
}

func isBearer(header, secret string) bool {
	return secret != "" && subtle.ConstantTimeCompare([]byte(header), []byte("Bearer "+secret)) == 1
}

// isSigned checks a header of the form t=<unix seconds>,v1=<hex>[,v1=<hex>]: the HMAC-SHA256 of the time and the raw
// body, at most five minutes from now.
func (d *Driver) isSigned(header, secret string, body []byte) bool {
	parts := strings.Split(header, ",")
	sent, hasTime := strings.CutPrefix(parts[0], "t=")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if secret == "" || !hasTime || err != nil || d.now().Sub(time.Unix(seconds, 0)).Abs() > maxSignatureAge {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(sent)) // a hash never fails
	mac.Write(body)
	want := hex.EncodeToString(mac.Sum(nil))
	for _, part := range parts[1:] {
		if got, isVersion := strings.CutPrefix(part, "v1="); isVersion && hmac.Equal([]byte(got), []byte(want)) {
			return true
		}
	}
	return false
}
