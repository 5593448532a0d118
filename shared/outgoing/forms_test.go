package outgoing

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// forbiddenTargets are addresses that a forged request wants to reach.
var forbiddenTargets = []string{
	"127.0.0.1", "127.0.0.53", "127.255.255.254", "0.0.0.0", "10.0.0.1", "10.255.0.7", "100.64.0.1", "100.100.100.200",
	"169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.17.0.1", "172.31.255.254", "192.0.0.192",
	"192.168.0.1", "192.168.255.254", "198.18.0.1", "224.0.0.1", "255.255.255.255",
}

// formsOf writes an IPv4 address in every notation that some program reads as an address.
func formsOf(text string) []string {
	address := netip.MustParseAddr(text)
	b := address.As4()
	n := binary.BigEndian.Uint32(b[:])
	low := n & 0xffff
	hosts := []string{
		text, text + ".", fmt.Sprint(n), fmt.Sprintf("%d.", n), fmt.Sprint(uint64(n) + 1<<32), fmt.Sprintf("0x%x", n),
		fmt.Sprintf("0X%08X", n), fmt.Sprintf("0%o", n), fmt.Sprintf("%d.%d", b[0], n&0xffffff),
		fmt.Sprintf("%d.%d.%d", b[0], b[1], low), fmt.Sprintf("0x%x.0x%x.0x%x.0x%x", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("%03d.%03d.%03d.%03d", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("0x%x.%d.0%o.%d", b[0], b[1], b[2], b[3]), fmt.Sprintf("%d.%d.%d.0x%x", b[0], b[1], b[2], b[3]),
		"[" + text + "]", "[::ffff:" + text + "]", fmt.Sprintf("[::ffff:%x:%x]", n>>16, low), "[::" + text + "]",
		fmt.Sprintf("[64:ff9b::%x:%x]", n>>16, low), fmt.Sprintf("[64:ff9b:1::%x:%x]", n>>16, low),
		fmt.Sprintf("[2002:%x:%x::1]", n>>16, low), fmt.Sprintf("[2001:0:1:1:0:0:%x:%x]", ^n>>16, ^n&0xffff),
		fmt.Sprintf("[fe80::5efe:%x:%x]", n>>16, low), "shop.example@" + text, "shop.example:x@" + text,
		text + "%00.shop.example", text + `\.shop.example`, strings.ReplaceAll(text, ".", "%2e"),
		strings.ReplaceAll(text, ".", "。"), strings.ReplaceAll(text, "1", "①"), text + "#@shop.example",
	}
	return hosts
}

// More than 500 notations of forbidden addresses: none passes, neither by its text nor when it is dialled.
func TestFormsOfForbiddenAddresses(t *testing.T) {
	count := 0
	for _, address := range forbiddenTargets {
		for _, host := range formsOf(address) {
			for _, policy := range []Policy{{}, {RegisteredHosts: []string{strings.Trim(host, "[]"), host}}} {
				if err := CheckNotificationURL("https://"+host+"/n", policy); err == nil {
					t.Errorf("https://%s/n passes with %v", host, policy)
				}
			}
			if err := CheckReturnURL("https://"+host+"/n", Policy{}); err == nil {
				t.Errorf("the return URL https://%s/n passes", host)
			}
			count++
		}
		if err := dialControl(Policy{})("tcp4", address+":443", nil); err == nil {
			t.Errorf("%s is dialled", address)
		}
		if err := dialControl(Policy{})("tcp6", "[::ffff:"+address+"]:443", nil); err == nil {
			t.Errorf("::ffff:%s is dialled", address)
		}
	}
	if count < 500 {
		t.Errorf("%d forms are checked, want at least 500", count)
	}
}
