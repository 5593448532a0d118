// Package sigv4 makes the local services check signatures (AWS Signature Version 4), as AWS does.
//
// One secret access key opens all services of a run, under any access key: that only names the caller. It ignores the
// request's age, because a copied request never leaves this machine. The invariant: a handler behind Require sees only
// requests that the secret access key signed, body included.
package sigv4

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// maxRequestBytes bounds a request; it is DynamoDB's own limit.
const maxRequestBytes = 16 << 20

// timeFormat is the format of the header X-Amz-Date.
const timeFormat = "20060102T150405Z"

// refusal is the services' error for a request without a valid signature.
const refusal = `{"__type":"InvalidSignatureException","message":` +
	`"The request is not signed with this run's credentials: use those in aws.env."}`

// Require returns a handler that passes on only requests with a valid signature, and responds 403 to others.
func Require(secretKey string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
		if err != nil || !isSigned(r, body, secretKey) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, refusal)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// isSigned signs the request again, with the headers that its signature names, and compares the signatures.
func isSigned(r *http.Request, body []byte, secretKey string) bool {
	sent, parsed := parseAuthorization(r.Header.Get("Authorization"))
	at, err := time.Parse(timeFormat, r.Header.Get("X-Amz-Date"))
	if !parsed || err != nil || !slices.Contains(sent.headers, "host") {
		return false
	}
	again := &http.Request{
		Method: r.Method, Host: r.Host, Header: http.Header{},
		URL: &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery},
	}
	for _, name := range sent.headers {
		if values := r.Header.Values(name); len(values) > 0 && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if slices.Contains(sent.headers, "content-length") { // some clients do not sign it
		again.ContentLength = r.ContentLength
	}
	sum := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: sent.accessKey, SecretAccessKey: secretKey}
	err = v4.NewSigner().SignHTTP(r.Context(), keys, again, hex.EncodeToString(sum[:]), sent.service, sent.region, at)
	wanted, _ := parseAuthorization(again.Header.Get("Authorization"))
	return err == nil && subtle.ConstantTimeCompare([]byte(sent.signature), []byte(wanted.signature)) == 1
}

// authorization is what the header of a signed request names.
type authorization struct {
	accessKey, region, service, signature string
	headers                               []string // lower case
}

// parseAuthorization reads "AWS4-HMAC-SHA256 Credential=<key>/<date>/<region>/<service>/aws4_request,
// SignedHeaders=<a;b>, Signature=<hex>".
func parseAuthorization(text string) (authorization, bool) {
	fields, found := strings.CutPrefix(text, "AWS4-HMAC-SHA256 ")
	values := map[string]string{}
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		values[name] = value
	}
	scope := strings.Split(values["Credential"], "/")
	if !found || len(scope) != 5 || values["Signature"] == "" {
		return authorization{}, false
	}
	return authorization{
		accessKey: scope[0], region: scope[2], service: scope[3], signature: values["Signature"],
		headers: strings.Split(values["SignedHeaders"], ";"),
	}, true
}
