package smoke

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/localhost"
)

// issuedToken is replaced by the token that a check before got.
const issuedToken = "issued"

// Limits of a request. API Gateway waits 29 s for a function.
const (
	requestTimeout = 35 * time.Second
	maxResponse    = 1 << 20 // bytes
)

// NewClient returns a client that follows no redirect.
func NewClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout, Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Runner sends checks to one address, one after the other: a check may use the token that one before it got.
type Runner struct {
	Client *http.Client
	Base   string // without a slash at its end
	token  string
}

// Run sends one check. The error says what the response lacks, and quotes neither credentials nor a token.
func (r *Runner) Run(ctx context.Context, c Check) error {
	request, err := http.NewRequestWithContext(ctx, c.method, r.Base+c.path, strings.NewReader(c.body))
	if err != nil {
		return err
	}
	for name, value := range c.header {
		if value == issuedToken {
			value = "Bearer " + r.token
		}
		request.Header[name] = []string{value}
	}
	response, err := r.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return err
	}
	if response.StatusCode != c.want.status {
		return fmt.Errorf("the status is %d, want %d", response.StatusCode, c.want.status)
	}
	for name, begins := range c.want.header {
		// API Gateway renames the challenge of a 401.
		values := append(response.Header.Values(name), response.Header.Values("X-Amzn-Remapped-"+name)...)
		if !slices.ContainsFunc(values, func(value string) bool { return strings.HasPrefix(value, begins) }) {
			return fmt.Errorf("the header %s is %q, want one that begins with %q", name, values, begins)
		}
	}
	if c.want.errorID != "" {
		return c.want.checkError(response.Header.Get("Content-Type"), body)
	}
	return r.checkMembers(c.want.json, body)
}

// errorTexts has the texts of the errors that the checks meet (decision "error-table").
var errorTexts = map[string]string{
	"SVC0002": "Invalid input value for message part %1",
	"900901":  "Invalid Credentials",
	"900902":  "Missing Credentials",
	"900906":  "No matching resource found",
}

// checkError compares the body with the error of the contract byte for byte.
func (w want) checkError(mediaType string, body []byte) error {
	side := "policyException"
	if strings.HasPrefix(w.errorID, "SVC") {
		side = "serviceException"
	}
	variables, err := json.Marshal(append([]string{}, w.variables...))
	if err != nil {
		return err
	}
	expected := fmt.Sprintf(`{"requestError":{%q:{"messageId":%q,"text":%q,"variables":%s}}}`, side, w.errorID,
		errorTexts[w.errorID], variables)
	if string(bytes.TrimSpace(body)) != expected {
		return fmt.Errorf("the response is %.300q, want %s", body, expected)
	}
	if mediaType != "application/json" {
		return fmt.Errorf("the Content-Type is %q, want application/json", mediaType)
	}
	return nil
}

// checkMembers checks members of a JSON object, and keeps an access token.
func (r *Runner) checkMembers(members map[string]string, body []byte) error {
	var document map[string]any
	if json.Unmarshal(body, &document) != nil {
		return errors.New("the response is not a JSON object")
	}
	for name, expected := range members {
		found, exists := document[name]
		if !exists || found == "" || expected != "*" && found != expected {
			return fmt.Errorf("the response's %s is not %s", name, expected)
		}
	}
	if issued, _ := document["access_token"].(string); issued != "" {
		r.token = issued
	}
	return nil
}

// minCertificateLifetime is the least remaining lifetime of a certificate. ACM renews its certificates 60 days before
// they expire.
const minCertificateLifetime = 14 * 24 * time.Hour

// ErrPlainHTTP is the result of CheckTLS for plain http on this machine, which has no connection to check.
var ErrPlainHTTP = errors.New("plain http, on this machine")

// ErrNotEncrypted is the result of CheckTLS for plain http to another machine, which must get no request.
var ErrNotEncrypted = errors.New("a deployment on another machine needs https")

// CheckTLS checks the connection: TLS 1.2 or newer, a certificate with enough lifetime, and no older version.
func CheckTLS(ctx context.Context, address string, now time.Time) error {
	found, err := url.Parse(address)
	if err != nil {
		return err
	}
	if found.Scheme != "https" {
		if !localhost.IsLoopback(found.Hostname()) {
			return ErrNotEncrypted
		}
		return ErrPlainHTTP
	}
	port := found.Port()
	if port == "" {
		port = "443"
	}
	host := net.JoinHostPort(found.Hostname(), port)
	connection, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	secure, isTLS := connection.(*tls.Conn)
	if !isTLS {
		return errors.New("the connection is not TLS")
	}
	if until := secure.ConnectionState().PeerCertificates[0].NotAfter; until.Sub(now) < minCertificateLifetime {
		return fmt.Errorf("the certificate expires too soon, at %s", until)
	}
	return CheckOldTLSRefused(ctx, host, nil)
}

// CheckOldTLSRefused checks that a handshake with TLS 1.1 fails. nil roots are the system's.
func CheckOldTLSRefused(ctx context.Context, host string, roots *x509.CertPool) error {
	dialer := &tls.Dialer{Config: &tls.Config{ //nolint:gosec // the check expects a refusal
		RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
	}}
	old, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil //nolint:nilerr // the refusal is expected
	}
	return errors.Join(old.Close(), errors.New("TLS 1.1 is accepted"))
}
