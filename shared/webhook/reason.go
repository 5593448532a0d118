package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"mobilegateway/shared/outgoing"
)

// The reasons of a failed attempt. They are stored with the notification.
const (
	ReasonUnsigned  = "unsigned"  // the merchant has no signing secret
	ReasonURL       = "url"       // the URL cannot be used
	ReasonAddress   = "address"   // the name resolved to a private or special address
	ReasonName      = "name"      // the name did not resolve
	ReasonTLS       = "tls"       // no TLS, or an invalid certificate
	ReasonTimeout   = "timeout"   // no response in time
	ReasonConnect   = "connect"   // the connection was refused or broke before a response
	ReasonRedirect  = "redirect"  // 3xx: never followed
	ReasonThrottled = "throttled" // 429
	ReasonGone      = "gone"      // 410
	ReasonClient    = "refused"   // another 4xx
	ReasonManual    = "manual"    // a person disabled the URL
	ReasonServer    = "server"    // 5xx, or a status that does not exist
)

// failureReason maps the error of an attempt without a response to its reason.
func failureReason(err error) string {
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, outgoing.ErrForbiddenAddress):
		return ReasonAddress
	case errors.Is(err, outgoing.ErrNotHTTPS):
		return ReasonURL
	case errors.Is(err, context.DeadlineExceeded), isNetwork && network.Timeout():
		return ReasonTimeout
	case isType[*net.DNSError](err):
		return ReasonName
	case errors.Is(err, http.ErrSchemeMismatch), isType[*tls.CertificateVerificationError](err),
		isType[tls.RecordHeaderError](err), isType[tls.AlertError](err):
		return ReasonTLS
	}
	return ReasonConnect
}

// isType reports whether an error of type E is in the chain of err.
func isType[E error](err error) bool {
	_, found := errors.AsType[E](err)
	return found
}
