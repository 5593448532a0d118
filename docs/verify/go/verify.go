// Command verify checks the signature of one notification. WEBHOOK_SECRET is the secret. The arguments are webhook-id,
// webhook-timestamp and webhook-signature, the standard input is the raw body. Copy verify into your server.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// verify returns an error if a notification is not authentic. body is the raw body, byte for byte. signatures is the
// whole header webhook-signature, which contains two signatures during a rotation. An absent header is "".
func verify(secret, id, timestamp, signatures string, body []byte, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return errors.New("the secret is not whsec_ and base64")
	}
	seconds, err := strconv.ParseUint(timestamp, 10, 63)
	unprintable := func(r rune) bool { return r < '!' || r > '~' }
	if id == "" || len(id) > 256 || strings.ContainsFunc(id, unprintable) || err != nil || len(timestamp) > 15 ||
		signatures == "" {
		return errors.New("a header is missing or malformed")
	}
	if now.Sub(time.Unix(int64(seconds), 0)).Abs() > 5*time.Minute {
		return errors.New("the timestamp is not within 5 minutes")
	}
	hash := hmac.New(sha256.New, key)
	hash.Write([]byte(id + "." + timestamp + "."))
	hash.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(hash.Sum(nil)))
	for signature := range strings.SplitSeq(signatures, " ") {
		if hmac.Equal([]byte(signature), expected) {
			return nil
		}
	}
	return errors.New("no signature matches")
}

func main() {
	secret, found := os.LookupEnv("WEBHOOK_SECRET")
	if len(os.Args) != 4 || !found {
		_, _ = fmt.Fprintln(os.Stderr, "WEBHOOK_SECRET=whsec_... verify ID TIMESTAMP SIGNATURE < BODY")
		os.Exit(1)
	}
	body, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = verify(secret, os.Args[1], os.Args[2], os.Args[3], body, time.Now())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, "verified")
}
