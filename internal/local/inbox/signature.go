package inbox

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// timestampTolerance is the maximum difference of a notification's time and its arrival (Standard Webhooks 1.0).
const timestampTolerance = 5 * time.Minute

// checkSignature returns the status of a message's signature: "verified" if one of the secrets made it, else the reason
// why it is not valid.
func checkSignature(secrets []string, m Message) string {
	header := http.Header{}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		value := m.Headers[name]
		if value == "" {
			return "not signed"
		}
		header.Set(name, value)
	}
	seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		return "timestamp is not a number"
	}
	if age := m.ReceivedAt.Sub(time.Unix(seconds, 0)); age.Abs() > timestampTolerance {
		return fmt.Sprintf("timestamp is %s off", age.Round(time.Second))
	}
	for _, secret := range secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err == nil && verifier.VerifyIgnoringTimestamp([]byte(m.Body), header) == nil {
			return "verified"
		}
	}
	return "signature does not match"
}
