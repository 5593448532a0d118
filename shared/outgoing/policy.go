// Package outgoing checks addresses that merchants choose: notification URLs, to which the gateway posts, and return
// URLs, to which it sends a customer's browser (decision "outgoing-addresses").
//
// CheckNotificationURL checks the text of a URL, at its registration and in a request. NewClient's client checks each
// resolved address before it connects. The invariant: no connection reaches a private, loopback, link-local or
// otherwise special address.
package outgoing

import (
	"net"
	"slices"
	"strings"
)

// Policy selects the acceptable addresses.
type Policy struct {
	// AllowLoopback accepts localhost and loopback addresses, with http and on any port, also if they are not
	// registered. It is only for the local run.
	AllowLoopback bool
	// RegisteredHostsOnly accepts only RegisteredHosts, and nothing if that list is empty.
	RegisteredHostsOnly bool
	// RegisteredHosts are "host", or "host:port" for a port other than 443. Names match exactly, except for case. A
	// non-empty list implies RegisteredHostsOnly.
	RegisteredHosts []string
}

// httpsPort is the only port that needs no registration.
const httpsPort = "443"

func (p Policy) isRegistered(host, port string) bool {
	return slices.ContainsFunc(p.RegisteredHosts, func(entry string) bool {
		entryHost, entryPort, err := net.SplitHostPort(entry)
		if err != nil {
			entryHost, entryPort = strings.Trim(entry, "[]"), httpsPort
		}
		return strings.EqualFold(entryHost, host) && entryPort == port
	})
}
