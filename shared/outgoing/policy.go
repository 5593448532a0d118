// Package outgoing holds the rules for addresses that others chose: the notification URLs to which the gateway posts,
// and the return URLs to which it sends a customer's browser (decision "outgoing-addresses").
//
// Check looks at the text of a URL, when it is registered and when a request brings it. Client looks at the address
// that a name resolved to, each time that a connection is dialled. The invariant: whatever a URL says and whatever a
// name resolves to, no connection reaches a private, loopback, link-local or otherwise special address.
package outgoing

import (
	"net"
	"slices"
	"strings"
)

// Policy says which addresses are acceptable.
type Policy struct {
	// AllowLoopback admits localhost and loopback addresses, with http and on any port, whatever Hosts says. It is for
	// the local run alone.
	AllowLoopback bool
	// RegisteredHostsOnly admits no host but those of Hosts, and none at all when Hosts is empty.
	RegisteredHostsOnly bool
	// RegisteredHosts are registered hosts, each "host", or "host:port" to admit a port other than 443. Names match exactly, but
	// for case. A non-empty list implies RegisteredHostsOnly.
	RegisteredHosts []string
}

// httpsPort is the only port that need not be registered.
const httpsPort = "443"

// requiresRegisteredHost tells whether only registered hosts are acceptable.
func (p Policy) requiresRegisteredHost() bool {
	return p.RegisteredHostsOnly || len(p.RegisteredHosts) > 0
}

// isRegistered tells whether a host is one of Hosts with this port.
func (p Policy) isRegistered(host, port string) bool {
	return slices.ContainsFunc(p.RegisteredHosts, func(entry string) bool {
		entryHost, entryPort, err := net.SplitHostPort(entry)
		if err != nil {
			entryHost, entryPort = strings.Trim(entry, "[]"), httpsPort
		}
		return strings.EqualFold(entryHost, host) && entryPort == port
	})
}
