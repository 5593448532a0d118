// Package webhook makes one delivery attempt of a notification to a merchant (decision "notifications"). It signs the
// body (Standard Webhooks 1.0), posts it, classifies the response, and computes the time of the next attempt.
//
// It neither stores nor retries. Its invariants: an attempt ends within its timeout; the functions never keep a
// response body; a result is Delivered only after a 2xx response.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/keyring"
)

// The headers of Standard Webhooks 1.0.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// secretPrefix begins the text form of a secret.
const secretPrefix = "whsec_"

// secretDerivationLabel separates webhook secrets from any other use of a key of the ring.
const secretDerivationLabel = "mobilegateway webhook secret 1"

// Secret is a signing secret, 32 bytes. It is never logged.
type Secret []byte

// DeriveSecret makes the secret of a merchant from a key of the webhook key ring. The same merchant, version and key
// always give the same secret, so none is stored; the profile keeps version and key number (decision "key-rings").
func DeriveSecret(key keyring.Key, merchantID string, version int) Secret {
	hash := hmac.New(sha256.New, key.Value)
	hash.Write([]byte(secretDerivationLabel + "\x00" + merchantID + "\x00" + strconv.Itoa(version)))
	return hash.Sum(nil)
}

// Text is the secret as the merchant gets it: "whsec_" and standard base64.
func (s Secret) Text() string { return secretPrefix + base64.StdEncoding.EncodeToString(s) }

// Sign returns the value of the signature header: one "v1,<base64>" for each secret, separated by spaces, so that a
// merchant may verify with either while it changes over. The HMAC-SHA256 covers id, time in Unix seconds and body.
func Sign(secrets []Secret, id string, at time.Time, body []byte) string {
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		hash := hmac.New(sha256.New, secret)
		hash.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		hash.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(hash.Sum(nil)))
	}
	return strings.Join(signatures, " ")
}
