// Package localhost classifies hosts that are near: on this machine, or in a private network. Plain http may reach only
// such a host, because no certificate protects a token on its way there.
//
// It resolves no name. Its invariant: a name other than localhost is never near.
package localhost

import "net/netip"

// IsLoopback reports whether a host is this machine: localhost or a loopback address, without a port.
func IsLoopback(host string) bool {
	return host == "localhost" || parse(host).IsLoopback()
}

// IsNear reports whether a host is this machine or an address of a private network, without a port.
func IsNear(host string) bool {
	return IsLoopback(host) || parse(host).IsPrivate()
}

// parse returns the address that a host is. The zero Addr, for a name, is neither loopback nor private.
func parse(host string) netip.Addr {
	address, _ := netip.ParseAddr(host)
	return address.Unmap()
}
