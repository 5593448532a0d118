package outgoing

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"
)

// Limits of a URL (RFC 1035 for the name).
const (
	// MaxURLLength is the longest URL in characters.
	MaxURLLength   = 2048
	maxHostLength  = 253
	maxLabelLength = 63
)

// RefusalReason is the reason why a URL was refused. It contains no part of the URL.
type RefusalReason string

// Error implements error.
func (r RefusalReason) Error() string { return "URL refused: " + string(r) }

// The reasons.
const (
	RefusedFormat       RefusalReason = "not an absolute URL in ASCII of at most 2048 characters"
	RefusedScheme       RefusalReason = "not https"
	RefusedUserInfo     RefusalReason = "with user information"
	RefusedFragment     RefusalReason = "with a fragment"
	RefusedHost         RefusalReason = "not a host name of the public Internet"
	RefusedAddress      RefusalReason = "a private or special address, or an unusual notation of an address"
	RefusedPort         RefusalReason = "a port that is not registered"
	RefusedUnregistered RefusalReason = "a host that is not registered"
)

// CheckNotificationURL checks that the gateway may post to a URL. It requires https, a public host name or a public
// address in its usual notation, and port 443 or a registered one. User information and a fragment are refused, and an
// unregistered host if the policy requires registration. It resolves no name; the client does that. The error is a
// RefusalReason.
func CheckNotificationURL(rawURL string, policy Policy) error {
	target, err := parseURL(rawURL, policy)
	switch {
	case err != nil:
		return err
	case strings.Contains(rawURL, "#"):
		return RefusedFragment
	case target.loopback, policy.isRegistered(target.host, target.port):
		return nil
	case policy.RegisteredHostsOnly || len(policy.RegisteredHosts) > 0:
		return RefusedUnregistered
	case target.port != httpsPort:
		return RefusedPort
	}
	return nil
}

// CheckReturnURL checks that the customer's browser may be sent to a URL (return_url, cancel_url). Unlike
// CheckNotificationURL, it accepts every port, a fragment and unregistered hosts: the gateway itself never calls the
// URL.
func CheckReturnURL(rawURL string, policy Policy) error {
	_, err := parseURL(rawURL, policy)
	return err
}

// destination is the parsed target of a URL.
type destination struct {
	host     string // lower case, without brackets
	port     string // decimal; the scheme's default if none is given
	loopback bool   // only if the policy allows it
}

// parseURL applies the rules that are common to all URLs.
func parseURL(rawURL string, policy Policy) (destination, error) {
	if !isPrintableASCII(rawURL) {
		return destination{}, RefusedFormat
	}
	parsed, err := url.Parse(rawURL)
	if err != nil || parsed.Opaque != "" || parsed.Host == "" {
		return destination{}, RefusedFormat
	}
	if parsed.User != nil {
		return destination{}, RefusedUserInfo
	}
	host := strings.ToLower(parsed.Hostname())
	loopback, err := checkHost(host, strings.HasPrefix(parsed.Host, "["), policy)
	if err != nil {
		return destination{}, err
	}
	if parsed.Scheme != "https" && (parsed.Scheme != "http" || !loopback) {
		return destination{}, RefusedScheme
	}
	port, valid := effectivePort(parsed)
	if !valid {
		return destination{}, RefusedPort
	}
	return destination{host: host, port: port, loopback: loopback}, nil
}

// isPrintableASCII refuses characters that URL parsers read differently: anything but printable ASCII, and the
// backslash.
func isPrintableASCII(rawURL string) bool {
	return rawURL != "" && len(rawURL) <= MaxURLLength && !strings.ContainsFunc(rawURL, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '\\'
	})
}

// effectivePort returns the port, which must be in its usual notation.
func effectivePort(u *url.URL) (string, bool) {
	port := u.Port()
	switch {
	case strings.HasSuffix(u.Host, ":"):
		return "", false
	case port == "" && u.Scheme == "http":
		return "80", true
	case port == "":
		return httpsPort, true
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return port, err == nil && number > 0 && strconv.FormatUint(number, 10) == port
}

// checkHost checks a host. loopback is true for a loopback host that the policy allows.
func checkHost(host string, bracketed bool, policy Policy) (loopback bool, err error) {
	if bracketed || endsInNumber(host) {
		address, err := netip.ParseAddr(host) // accepts only four decimal parts without leading zeros
		if err != nil || address.Is6() != bracketed || address.Zone() != "" {
			return false, RefusedAddress
		}
		loopback = policy.AllowLoopback && isLoopback(address)
		if !loopback && !isPublicAddress(address) {
			return false, RefusedAddress
		}
		return loopback, nil
	}
	if loopback = host == "localhost" && policy.AllowLoopback; !loopback && !isPublicHostName(host) {
		return false, RefusedHost
	}
	return loopback, nil
}

// endsInNumber reports whether some programs would read a host as an IPv4 address: its last label is a decimal, octal
// or hexadecimal number (WHATWG URL Standard, "ends in a number"). A trailing dot does not matter.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndex(host, ".")+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// privateSuffixes are top-level names outside the public Internet (IANA, Special-Use Domain Names; ICANN for
// "internal").
var privateSuffixes = []string{".localhost", ".local", ".internal", ".arpa", ".onion", ".localdomain"}

// isPublicHostName reports whether host, in lower case, has the form of a public name: at least two labels of letters,
// digits and hyphens. Names in other scripts have their "xn--" form.
func isPublicHostName(host string) bool {
	labels := strings.Split(host, ".")
	return len(labels) >= 2 && len(host) <= maxHostLength &&
		!slices.ContainsFunc(privateSuffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) }) &&
		!slices.ContainsFunc(labels, func(label string) bool { return !isHostLabel(label) })
}

func isHostLabel(label string) bool {
	return label != "" && len(label) <= maxLabelLength && label[0] != '-' && label[len(label)-1] != '-' &&
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// isLoopback reports whether an address is loopback in its own family.
func isLoopback(address netip.Addr) bool { return address.IsLoopback() && !address.Is4In6() }

// addressGuard checks against IANA's registries of special addresses. It is never changed.
var addressGuard = ssrf.New(ssrf.WithAnyPort())

// isPublicAddress reports whether an address belongs to the public Internet. IPv4 inside IPv6 (mapped, compatible,
// NAT64, 6to4, Teredo) never does, because it could hide a private address.
func isPublicAddress(address netip.Addr) bool {
	return address.IsValid() && address.Zone() == "" && addressGuard.SafeAddr(address) == nil
}
