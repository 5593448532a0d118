package outgoing

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// addresses lists IP addresses in their usual notation, and whether a connection may reach them.
var addresses = []struct {
	address string
	public  bool
	why     string
}{
	// IPv4: the public Internet, next to special addresses.
	{"1.1.1.1", true, "a public resolver"},
	{"8.8.8.8", true, "a public resolver"},
	{"41.66.0.1", true, "Africa"},
	{"197.155.0.1", true, "Africa"},
	{"9.255.255.255", true, "below 10/8"},
	{"11.0.0.0", true, "above 10/8"},
	{"100.63.255.255", true, "below shared addresses"},
	{"100.128.0.0", true, "above shared addresses"},
	{"126.255.255.255", true, "below loopback"},
	{"128.0.0.1", true, "above loopback"},
	{"169.253.255.255", true, "below link-local"},
	{"169.255.0.1", true, "above link-local"},
	{"172.15.255.255", true, "below 172.16/12"},
	{"172.32.0.0", true, "above 172.16/12"},
	{"192.167.255.255", true, "below 192.168/16"},
	{"192.169.0.1", true, "above 192.168/16"},
	{"198.17.255.255", true, "below benchmarking"},
	{"198.20.0.1", true, "above benchmarking"},
	{"223.255.255.255", true, "below multicast"},
	// IPv4: special.
	{"0.0.0.0", false, "this host"},
	{"0.0.0.1", false, "this network"},
	{"0.255.255.255", false, "this network"},
	{"10.0.0.0", false, "private"},
	{"10.0.0.1", false, "private"},
	{"10.255.255.255", false, "private"},
	{"100.64.0.1", false, "shared (carrier NAT)"},
	{"100.100.100.200", false, "shared; a cloud's metadata"},
	{"100.127.255.255", false, "shared"},
	{"127.0.0.0", false, "loopback"},
	{"127.0.0.1", false, "loopback"},
	{"127.0.0.53", false, "loopback"},
	{"127.1.2.3", false, "loopback"},
	{"127.255.255.255", false, "loopback"},
	{"169.254.0.1", false, "link-local"},
	{"169.254.100.1", false, "link-local; a function's own"},
	{"169.254.169.253", false, "link-local; a cloud's resolver"},
	{"169.254.169.254", false, "link-local; a cloud's metadata"},
	{"169.254.170.2", false, "link-local; a container's credentials"},
	{"172.16.0.1", false, "private"},
	{"172.17.0.1", false, "private; a container bridge"},
	{"172.31.255.255", false, "private"},
	{"192.0.0.1", false, "protocol assignments"},
	{"192.0.0.8", false, "protocol assignments"},
	{"192.0.0.170", false, "NAT64 discovery"},
	{"192.0.0.192", false, "protocol assignments; a cloud's metadata"},
	{"192.0.2.1", false, "documentation"},
	{"192.31.196.1", false, "AS112"},
	{"192.52.193.1", false, "AMT"},
	{"192.88.99.1", false, "6to4 relay"},
	{"192.168.0.1", false, "private"},
	{"192.168.255.255", false, "private"},
	{"192.175.48.1", false, "AS112"},
	{"198.18.0.1", false, "benchmarking"},
	{"198.19.255.255", false, "benchmarking"},
	{"198.51.100.1", false, "documentation"},
	{"203.0.113.1", false, "documentation"},
	{"224.0.0.1", false, "multicast"},
	{"239.255.255.250", false, "multicast"},
	{"240.0.0.1", false, "reserved"},
	{"255.255.255.254", false, "reserved"},
	{"255.255.255.255", false, "broadcast"},
	// IPv6: the public Internet.
	{"2606:4700:4700::1111", true, "a public resolver"},
	{"2001:4860:4860::8888", true, "a public resolver"},
	{"2c0f:fb50::1", true, "Africa"},
	{"2a00:1450:4007::1", true, "Europe"},
	{"2001:200::1", true, "above the protocol assignments"},
	{"2003::1", true, "above 6to4"},
	// IPv6: special.
	{"::", false, "unspecified"},
	{"::1", false, "loopback"},
	{"::2", false, "IPv4-compatible"},
	{"::127.0.0.1", false, "IPv4-compatible loopback"},
	{"::8.8.8.8", false, "IPv4-compatible"},
	{"::ffff:127.0.0.1", false, "IPv4-mapped loopback"},
	{"::ffff:10.0.0.1", false, "IPv4-mapped private"},
	{"::ffff:169.254.169.254", false, "IPv4-mapped metadata"},
	{"::ffff:8.8.8.8", false, "IPv4-mapped"},
	{"::ffff:0:127.0.0.1", false, "IPv4-translated"},
	{"64:ff9b::127.0.0.1", false, "NAT64 of loopback"},
	{"64:ff9b::8.8.8.8", false, "NAT64"},
	{"64:ff9b:1::10.0.0.1", false, "local NAT64"},
	{"100::1", false, "discard"},
	{"100:0:0:1::1", false, "dummy"},
	{"2001::1", false, "Teredo"},
	{"2001:0:7f00:1::", false, "Teredo of loopback"},
	{"2001:1::1", false, "port control"},
	{"2001:2::1", false, "benchmarking"},
	{"2001:3::1", false, "AMT"},
	{"2001:4:112::1", false, "AS112"},
	{"2001:10::1", false, "ORCHID"},
	{"2001:20::1", false, "ORCHIDv2"},
	{"2001:db8::1", false, "documentation"},
	{"2002:7f00:1::1", false, "6to4 of loopback"},
	{"2002:a00:1::1", false, "6to4 of private"},
	{"2002:808:808::1", false, "6to4"},
	{"2620:4f:8000::1", false, "AS112"},
	{"3fff::1", false, "documentation"},
	{"4000::1", false, "not assigned"},
	{"5f00::1", false, "segment routing"},
	{"fc00::1", false, "unique local"},
	{"fd00:ec2::254", false, "unique local; a cloud's metadata"},
	{"fdff:ffff::1", false, "unique local"},
	{"fe80::1", false, "link-local"},
	{"febf::1", false, "link-local"},
	{"fec0::1", false, "site-local"},
	{"ff02::1", false, "multicast"},
	{"ff0e::1", false, "multicast"},
}

func TestAddresses(t *testing.T) {
	if len(addresses) < 100 {
		t.Fatalf("the table has %d addresses", len(addresses))
	}
	dial := dialControl(Policy{})
	for _, c := range addresses {
		network, host := "tcp4", c.address
		if netip.MustParseAddr(c.address).Is6() {
			network, host = "tcp6", "["+c.address+"]"
		}
		if err := dial(network, net.JoinHostPort(c.address, "443"), nil); (err == nil) != c.public {
			t.Errorf("dialling %s (%s): %v", c.address, c.why, err)
		}
		if err := CheckNotificationURL("https://"+host+"/x", Policy{}); (err == nil) != c.public {
			t.Errorf("checking %s (%s): %v", c.address, c.why, err)
		}
	}
}

func TestDialControl(t *testing.T) {
	cases := []struct {
		name, network, address string
		policy                 Policy
		want                   bool
	}{
		{"a zone", "tcp6", "[fe80::1%eth0]:443", Policy{}, false},
		{"a public address with a zone", "tcp6", "[2606:4700::1%eth0]:443", Policy{}, false},
		{"another port", "tcp4", "8.8.8.8:8443", Policy{}, true},
		{"a datagram", "udp4", "8.8.8.8:443", Policy{}, false},
		{"a socket file", "unix", "/var/run/docker.sock", Policy{AllowLoopback: true}, false},
		{"no address", "tcp4", "", Policy{}, false},
		{"a name", "tcp4", "localhost:80", Policy{AllowLoopback: true}, false},
		{"loopback allowed", "tcp4", "127.0.0.1:3002", Policy{AllowLoopback: true}, true},
		{"IPv6 loopback allowed", "tcp6", "[::1]:3002", Policy{AllowLoopback: true}, true},
		{"private is still refused", "tcp4", "192.168.0.1:443", Policy{AllowLoopback: true}, false},
		{"metadata is still refused", "tcp4", "169.254.169.254:80", Policy{AllowLoopback: true}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := dialControl(c.policy)(c.network, c.address, nil)
			if (err == nil) != c.want || (err != nil && !errors.Is(err, ErrForbiddenAddress)) {
				t.Errorf("error %v, want a refusal: %v", err, !c.want)
			}
		})
	}
}

func TestCheckNotificationURL(t *testing.T) {
	registered := Policy{
		RegisteredHosts: []string{"Shop.example", "pay.example:8443", "[2606:4700::1]:9443", "1.2.3.4"},
	}
	local := Policy{AllowLoopback: true, RegisteredHostsOnly: true}
	cases := []struct {
		name, url string
		policy    Policy
		want      error
	}{
		{"a plain URL", "https://shop.example/notify?a=1&b=%20", Policy{}, nil},
		{"no path", "https://shop.example", Policy{}, nil},
		{"scheme and host in capitals", "HTTPS://SHOP.EXAMPLE/", Policy{}, nil},
		{"the port written out", "https://shop.example:443/", Policy{}, nil},
		{"a name of another script", "https://xn--bcher-kva.example/", Policy{}, nil},
		{"a name with digits in front", "https://1.2.3.4.example/", Policy{}, nil},
		{"a name like hexadecimal", "https://shop.0xfg/", Policy{}, nil},
		{"a public address", "https://8.8.8.8/", Policy{}, nil},
		{"a public IPv6 address", "https://[2606:4700:4700::1111]/", Policy{}, nil},

		{"empty", "", Policy{}, RefusedFormat},
		{"a path", "/notify", Policy{}, RefusedFormat},
		{"no scheme", "shop.example/notify", Policy{}, RefusedFormat},
		{"scheme-relative", "//shop.example/", Policy{}, RefusedScheme},
		{"opaque", "https:shop.example", Policy{}, RefusedFormat},
		{"no host", "https:///notify", Policy{}, RefusedFormat},
		{"a port without a host", "https://:443/", Policy{}, RefusedHost},
		{"too long", "https://shop.example/" + strings.Repeat("a", MaxURLLength), Policy{}, RefusedFormat},
		{"as long as can be", "https://shop.example/" + strings.Repeat("a", MaxURLLength-21), Policy{}, nil},
		{"a space", "https://shop.example/a b", Policy{}, RefusedFormat},
		{"a space in front", " https://shop.example/", Policy{}, RefusedFormat},
		{"a newline", "https://shop.example/\nHost: x", Policy{}, RefusedFormat},
		{"a tab in the host", "https://127.0.\t0.1/", Policy{}, RefusedFormat},
		{"a null byte", "https://shop.example/\x00", Policy{}, RefusedFormat},
		{"a backslash", `https://shop.example\@10.0.0.1/`, Policy{}, RefusedFormat},
		{"backslashes for slashes", `https:\\shop.example/`, Policy{}, RefusedFormat},
		{"beyond ASCII", "https://shop.example/é", Policy{}, RefusedFormat},

		{"http", "http://shop.example/", Policy{}, RefusedScheme},
		{"ftp", "ftp://shop.example/", Policy{}, RefusedScheme},
		{"file", "file://shop.example/etc/passwd", Policy{}, RefusedScheme},
		{"gopher", "gopher://shop.example/", Policy{}, RefusedScheme},
		{"javascript", "javascript:alert(1)", Policy{}, RefusedFormat},
		{"user information", "https://user@shop.example/", Policy{}, RefusedUserInfo},
		{"user and password", "https://user:word@shop.example/", Policy{}, RefusedUserInfo},
		{"empty user information", "https://@shop.example/", Policy{}, RefusedUserInfo},
		{"a host before the at", "https://shop.example@10.0.0.1/", Policy{}, RefusedUserInfo},
		{"a fragment", "https://shop.example/#a", Policy{}, RefusedFragment},
		{"an empty fragment", "https://shop.example/#", Policy{}, RefusedFragment},

		{"another port", "https://shop.example:8443/", Policy{}, RefusedPort},
		{"port 80", "https://shop.example:80/", Policy{}, RefusedPort},
		{"port 22", "https://8.8.8.8:22/", Policy{}, RefusedPort},
		{"port 0", "https://shop.example:0/", Policy{}, RefusedPort},
		{"a port with zeros", "https://shop.example:0443/", Policy{}, RefusedPort},
		{"a port too large", "https://shop.example:65979/", Policy{}, RefusedPort},
		{"an empty port", "https://shop.example:/", Policy{}, RefusedPort},
		{"a port that is not a number", "https://shop.example:https/", Policy{}, RefusedFormat},

		{"localhost", "https://localhost/", Policy{}, RefusedHost},
		{"localhost in capitals", "https://LOCALHOST/", Policy{}, RefusedHost},
		{"below localhost", "https://a.localhost/", Policy{}, RefusedHost},
		{"localhost with a dot", "https://localhost./", Policy{}, RefusedHost},
		{"localhost.localdomain", "https://localhost.localdomain/", Policy{}, RefusedHost},
		{"one label", "https://intranet/", Policy{}, RefusedHost},
		{"a cloud's metadata name", "https://metadata.google.internal/", Policy{}, RefusedHost},
		{"a name of the office", "https://printer.local/", Policy{}, RefusedHost},
		{"an onion", "https://abcdefghij.onion/", Policy{}, RefusedHost},
		{"a reverse name", "https://1.0.0.127.in-addr.arpa/", Policy{}, RefusedHost},
		{"a dot at the end", "https://shop.example./", Policy{}, RefusedHost},
		{"two dots", "https://shop..example/", Policy{}, RefusedHost},
		{"an underscore", "https://my_shop.example/", Policy{}, RefusedHost},
		{"a hyphen at the edge", "https://-shop.example/", Policy{}, RefusedHost},
		{"a label too long", "https://" + strings.Repeat("a", 64) + ".example/", Policy{}, RefusedHost},
		{"a name too long", "https://" + strings.Repeat("abcdefg.", 32) + "example/", Policy{}, RefusedHost},
		{"an escape in the host", "https://127%2e0.0.1/", Policy{}, RefusedFormat},
		{"escaped fullwidth digits", "https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", Policy{}, RefusedAddress},
		{"fullwidth digits", "https://１２７.0.0.1/", Policy{}, RefusedFormat},
		{"an ideographic dot", "https://127。0。0。1/", Policy{}, RefusedFormat},
		{"circled digits", "https://①②⑦.⓪.⓪.①/", Policy{}, RefusedFormat},
		{"Cyrillic letters", "https://ехаmple.com/", Policy{}, RefusedFormat},

		{"the short form", "https://127.1/", Policy{}, RefusedAddress},
		{"the shortest form", "https://0/", Policy{}, RefusedAddress},
		{"three parts", "https://127.0.1/", Policy{}, RefusedAddress},
		{"five parts", "https://127.0.0.0.1/", Policy{}, RefusedAddress},
		{"decimal", "https://2130706433/", Policy{}, RefusedAddress},
		{"decimal, wrapped around", "https://6425673729/", Policy{}, RefusedAddress},
		{"octal", "https://017700000001/", Policy{}, RefusedAddress},
		{"octal parts", "https://0177.0.0.01/", Policy{}, RefusedAddress},
		{"leading zeros", "https://127.000.000.001/", Policy{}, RefusedAddress},
		{"a public address with zeros", "https://08.8.8.8/", Policy{}, RefusedAddress},
		{"hexadecimal", "https://0x7f000001/", Policy{}, RefusedAddress},
		{"hexadecimal in capitals", "https://0X7F000001/", Policy{}, RefusedAddress},
		{"hexadecimal parts", "https://0x7f.0x0.0x0.0x1/", Policy{}, RefusedAddress},
		{"mixed parts", "https://127.0.0.0x1/", Policy{}, RefusedAddress},
		{"an empty hexadecimal part", "https://127.0.0.0x/", Policy{}, RefusedAddress},
		{"part too large", "https://256.1.1.1/", Policy{}, RefusedAddress},
		{"a dot behind", "https://127.0.0.1./", Policy{}, RefusedAddress},
		{"a dot behind a public address", "https://8.8.8.8./", Policy{}, RefusedAddress},
		{"a dot behind hexadecimal", "https://0x7f000001./", Policy{}, RefusedAddress},
		{"a name that ends in a number", "https://shop.example.1/", Policy{}, RefusedAddress},
		{"IPv4 in brackets", "https://[127.0.0.1]/", Policy{}, RefusedFormat},
		{"a public IPv4 address in brackets", "https://[8.8.8.8]/", Policy{}, RefusedFormat},
		{"a zone", "https://[fe80::1%25eth0]/", Policy{}, RefusedAddress},
		{"a public address with a zone", "https://[2606:4700::1%25eth0]/", Policy{}, RefusedAddress},
		{"IPv4-mapped in hexadecimal", "https://[::ffff:7f00:1]/", Policy{}, RefusedAddress},
		{"mapped, written out", "https://[0:0:0:0:0:ffff:127.0.0.1]/", Policy{}, RefusedAddress},
		{"compatible in hexadecimal", "https://[::7f00:1]/", Policy{}, RefusedAddress},
		{"loopback written out", "https://[0000:0000:0000:0000:0000:0000:0000:0001]/", Policy{}, RefusedAddress},
		{"a public IPv6 address, another port", "https://[2606:4700::1]:8443/", Policy{}, RefusedPort},

		{"registered", "https://shop.example/notify", registered, nil},
		{"registered, in capitals", "https://SHOP.example/notify", registered, nil},
		{"registered with a port", "https://pay.example:8443/notify", registered, nil},
		{"a registered address", "https://1.2.3.4/", registered, nil},
		{"a registered IPv6 address with a port", "https://[2606:4700::1]:9443/", registered, nil},
		{"registered with another port", "https://pay.example/notify", registered, RefusedUnregistered},
		{"registered without this port", "https://shop.example:8443/", registered, RefusedUnregistered},
		{"below a registered host", "https://a.shop.example/", registered, RefusedUnregistered},
		{"a longer name", "https://shop.example.evil.example/", registered, RefusedUnregistered},
		{"a name with that end", "https://myshop.example/", registered, RefusedUnregistered},
		{"the parent", "https://example/", registered, RefusedHost},
		{"none registered", "https://shop.example/", Policy{RegisteredHostsOnly: true}, RefusedUnregistered},
		{"a registered private address", "https://10.0.0.1/", Policy{RegisteredHosts: []string{"10.0.0.1"}},
			RefusedAddress},
		{"a registered localhost", "https://localhost/", Policy{RegisteredHosts: []string{"localhost"}}, RefusedHost},

		{"loopback, allowed", "http://127.0.0.1:3002/inbox", local, nil},
		{"localhost, allowed", "http://localhost:3002/inbox", local, nil},
		{"IPv6 loopback, allowed", "http://[::1]:3002/inbox", local, nil},
		{"loopback by https", "https://127.0.0.1/inbox", local, nil},
		{"loopback in a short form", "http://127.1:3002/", local, RefusedAddress},
		{"mapped loopback", "http://[::ffff:127.0.0.1]:3002/", local, RefusedAddress},
		{"private, where loopback is allowed", "http://192.168.0.1/", local, RefusedAddress},
		{"metadata, where loopback is allowed", "http://169.254.169.254/", local, RefusedAddress},
		{"http elsewhere, where loopback is allowed", "http://shop.example/", local, RefusedScheme},
		{"a user, where loopback is allowed", "http://a@127.0.0.1:3002/", local, RefusedUserInfo},
		{"unregistered, where loopback is allowed", "https://shop.example/", local, RefusedUnregistered},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := CheckNotificationURL(c.url, c.policy); !errors.Is(err, c.want) {
				t.Errorf("CheckNotificationURL(%q) = %v, want %v", c.url, err, c.want)
			}
		})
	}
}

func TestCheckReturnURL(t *testing.T) {
	cases := []struct {
		name, url string
		policy    Policy
		want      error
	}{
		{"a page", "https://shop.example/thanks?order=1", Policy{}, nil},
		{"a fragment", "https://shop.example/#/thanks", Policy{}, nil},
		{"another port", "https://shop.example:8443/thanks", Policy{}, nil},
		{"hosts do not matter", "https://shop.example/", Policy{RegisteredHostsOnly: true}, nil},
		{"http", "http://shop.example/", Policy{}, RefusedScheme},
		{"an app's scheme", "myshop://thanks", Policy{}, RefusedHost},
		{"script", "javascript:alert(1)", Policy{}, RefusedFormat},
		{"a user", "https://bank.example@evil.example/", Policy{}, RefusedUserInfo},
		{"a private address", "https://192.168.0.1/", Policy{}, RefusedAddress},
		{"local", "http://127.0.0.1:3000/thanks#x", Policy{AllowLoopback: true}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := CheckReturnURL(c.url, c.policy); !errors.Is(err, c.want) {
				t.Errorf("CheckReturnURL(%q) = %v, want %v", c.url, err, c.want)
			}
		})
	}
}

func TestRefusalsOmitTheURL(t *testing.T) {
	err := CheckNotificationURL("https://user:hunter2@10.0.0.1/", Policy{})
	if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "10.0") {
		t.Errorf("error %v, want one without the URL", err)
	}
}
