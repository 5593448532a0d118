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
	ReasonUnsigned  = "unsigned"  // the merchant has no signing secret
	ReasonURL       = "url"       // the URL cannot be used
	ReasonAddress   = "address"   // the name resolved to a private or special address
	ReasonName      = "name"      // the name did not resolve
	ReasonTLS       = "tls"       // no TLS, or a certificate that does not hold
	ReasonTimeout   = "timeout"   // no complete answer in time
	ReasonConnect   = "connect"   // the connection was refused or broke before an answer
	ReasonRedirect  = "redirect"  // 3xx: never followed
	ReasonThrottled = "throttled" // 429
	ReasonGone      = "gone"      // 410
	ReasonClient    = "refused"   // another 4xx
	ReasonServer    = "server"    // 5xx, or a status that does not exist
)

// failureReason finds the word for an attempt without an answer.
func failureReason(err error) string {
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
	case errors.Is(err, outgoing.ErrForbiddenAddress):
		return ReasonAddress
	case errors.Is(err, outgoing.ErrNotHTTPS):
		return ReasonURL
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return ReasonTimeout
	case errors.As(err, &name):
		return ReasonName
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert),
		errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return ReasonTLS
	}
	return ReasonConnect
}
