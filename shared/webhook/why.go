package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"

	"mobilegateway/shared/outgoing"
)

// Why an attempt failed: words for people and for counting. They are stored with the notification.
const (
	WhyUnsigned  = "unsigned"  // the merchant has no signing secret
	WhyURL       = "url"       // the URL cannot be used
	WhyAddress   = "address"   // the name resolved to a private or special address
	WhyName      = "name"      // the name did not resolve
	WhyTLS       = "tls"       // no TLS, or a certificate that does not hold
	WhyTimeout   = "timeout"   // no complete answer in time
	WhyConnect   = "connect"   // the connection was refused or broke before an answer
	WhyRedirect  = "redirect"  // 3xx: never followed
	WhyThrottled = "throttled" // 429
	WhyGone      = "gone"      // 410
	WhyClient    = "refused"   // another 4xx
	WhyServer    = "server"    // 5xx, or a status that does not exist
)

// whyFailed finds the word for an attempt without an answer.
func whyFailed(err error) string {
	var (
		name      *net.DNSError
		network   net.Error
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.Is(err, outgoing.ErrAddress):
		return WhyAddress
	case errors.Is(err, outgoing.ErrPlain):
		return WhyURL
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return WhyTimeout
	case errors.As(err, &name):
		return WhyName
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert),
		errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return WhyTLS
	}
	return WhyConnect
}
