package outgoing

import (
	"net/netip"
	"net/url"
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

// RefusalReason is why a URL was refused, in a few words that repeat nothing of it.
type RefusalReason string

// Error returns the words.
func (r RefusalReason) Error() string { return "URL refused: " + string(r) }

// The refusals.
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

// CheckNotificationURL tells whether the gateway may be asked to post to a URL: https, a public host name or a public address in its
// usual notation, port 443 or registered, no user information, no fragment, and a registered host where the policy
// wants one. It resolves no name; Client checks what it resolves to. The error is a Refusal.
func CheckNotificationURL(rawURL string, policy Policy) error {
	target, err := parseURL(rawURL, policy)
	switch {
	case err != nil:
		return err
	case target.url.Fragment != "" || strings.Contains(rawURL, "#"):
		return RefusedFragment
	case target.loopback:
		return nil
	case policy.isRegistered(target.host, target.port):
		return nil
	case policy.requiresRegisteredHost():
		return RefusedUnregistered
	case target.port != httpsPort:
		return RefusedPort
	}
	return nil
}

// CheckReturnURL tells whether the customer's browser may be sent to a URL (return_url, cancel_url). It is as Check, but
// any port and a fragment are fine, and hosts are not registered: the gateway never calls it.
func CheckReturnURL(rawURL string, policy Policy) error {
	_, err := parseURL(rawURL, policy)
	return err
}

// destination is where a URL leads.
type destination struct {
	url      *url.URL
	host     string // lower case, without brackets
	port     string // decimal; the scheme's own when none is given
	loopback bool   // only where the policy allows it
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
	target := destination{url: parsed, host: strings.ToLower(parsed.Hostname())}
	if target.loopback, err = checkHost(target.host, strings.HasPrefix(parsed.Host, "["), policy); err != nil {
		return destination{}, err
	}
	if parsed.Scheme != "https" && (parsed.Scheme != "http" || !target.loopback) {
		return destination{}, RefusedScheme
	}
	var ok bool
	if target.port, ok = effectivePort(parsed); !ok {
		return destination{}, RefusedPort
	}
	return target, nil
}

// isPrintableASCII refuses what parsers of URLs read in different ways: anything but printable ASCII, and the backslash.
func isPrintableASCII(rawURL string) bool {
	return rawURL != "" && len(rawURL) <= MaxURLLength && !strings.ContainsFunc(rawURL, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '\\'
	})
}

// effectivePort returns the port, which must be written as people write it.
func effectivePort(u *url.URL) (string, bool) {
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", false
		}
		if u.Scheme == "http" {
			return "80", true
		}
		return httpsPort, true
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return port, err == nil && number > 0 && strconv.FormatUint(number, 10) == port
}

// checkHost judges a host. loopback is true for a loopback host that the policy allows.
func checkHost(host string, bracketed bool, policy Policy) (loopback bool, err error) {
	if bracketed || endsInNumber(host) {
		address, err := netip.ParseAddr(host) // knows the usual notation alone: four decimal parts, no leading zeros
		if err != nil || address.Is6() != bracketed || address.Zone() != "" {
			return false, RefusedAddress
		}
		if policy.AllowLoopback && isLoopback(address) {
			return true, nil
		}
		if !isPublicAddress(address) {
			return false, RefusedAddress
		}
		return false, nil
	}
	if host == "localhost" && policy.AllowLoopback {
		return true, nil
	}
	if !isPublicHostName(host) {
		return false, RefusedHost
	}
	return false, nil
}

// endsInNumber tells whether some programs would read a host as an IPv4 address: its last label is a number, decimal,
// octal or hexadecimal (WHATWG URL Standard, "ends in a number"). A dot at the end does not matter.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndex(host, ".")+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// privateSuffixes are top-level names that do not exist on the public Internet (IANA, Special-Use Domain Names; ICANN
// for "internal").
var privateSuffixes = []string{".localhost", ".local", ".internal", ".arpa", ".onion", ".localdomain"}

// isPublicHostName tells whether host, in lower case, has the form of a name on the public Internet: at least two labels of
// letters, digits and hyphens. Names of other scripts come in their "xn--" form.
func isPublicHostName(host string) bool {
	for _, suffix := range privateSuffixes {
		if strings.HasSuffix(host, suffix) {
			return false
		}
	}
	labels := strings.Split(host, ".")
	if len(labels) < 2 || len(host) > maxHostLength {
		return false
	}
	for _, label := range labels {
		if !isHostLabel(label) {
			return false
		}
	}
	return true
}

func isHostLabel(label string) bool {
	return label != "" && len(label) <= maxLabelLength && label[0] != '-' && label[len(label)-1] != '-' &&
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// isLoopback tells whether an address is loopback in its own family.
func isLoopback(address netip.Addr) bool { return address.IsLoopback() && !address.Is4In6() }

// addressGuard holds IANA's registries of special addresses. It is never changed.
var addressGuard = ssrf.New(ssrf.WithAnyPort())

// isPublicAddress tells whether an address belongs to the public Internet. IPv4 inside IPv6 (mapped, compatible, NAT64, 6to4,
// Teredo) never does: nobody needs it here, and it would hide a private address.
func isPublicAddress(address netip.Addr) bool {
	return address.IsValid() && address.Zone() == "" && addressGuard.SafeAddr(address) == nil
}
