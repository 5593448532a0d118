package inbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timestampTolerance is how far a notification's time may be from the time of its arrival (Standard Webhooks 1.0).
const timestampTolerance = 5 * time.Minute

// The verdicts on a signature.
const (
	signatureValid    = "verified"
	signatureMissing  = "not signed"
	signatureMismatch = "signature does not match"
)

// checkSignature judges a message's signature by the secrets of the merchant.
func checkSignature(secrets []string, m Message) string {
	id, at, signatures := m.Headers["webhook-id"], m.Headers["webhook-timestamp"], m.Headers["webhook-signature"]
	if id == "" || at == "" || signatures == "" {
		return signatureMissing
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return "timestamp is not a number"
	}
	if age := m.ReceivedAt.Sub(time.Unix(seconds, 0)); age.Abs() > timestampTolerance {
		return fmt.Sprintf("timestamp is %s off", age.Round(time.Second))
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			continue
		}
		hash := hmac.New(sha256.New, key)
		hash.Write([]byte(id + "." + at + "." + m.Body))
		want := hash.Sum(nil)
		for signature := range strings.FieldsSeq(signatures) {
			encoded, isV1 := strings.CutPrefix(signature, "v1,")
			got, err := base64.StdEncoding.DecodeString(encoded)
			if isV1 && err == nil && hmac.Equal(got, want) {
				return signatureValid
			}
		}
	}
	return signatureMismatch
}
