package dynamo

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bodies are responses as the functions store them, with the most bytes that their stored form may have.
var bodies = map[string]struct {
	body string
	most int
}{
	"no body":   {"", 0},
	"short":     {"{}", 2},
	"not JSON":  {"\x01", 3},
	"unlike":    {"Zq9!Zq8?Zq7.", 12},
	"many same": {strings.Repeat("a", 1000), 10},
	"payment, ussd": {`{"meta":{"type":"payment","source":"sandbox","channel":"ussd"},"status":"pending",` +
		`"amount":"500","order-id":"DemoShop_2000000","currency":"XOF","reference":"DemoShop","country-code":"CI",` +
		`"state":"s","user_msisdn":"0700000000","Transaction-id":"93d7e89f-c6d5-88e5-a850-b7b8978e3ceb",` +
		`"date":"2026-11-27 00:50:29","intTransaction-id":"93d7e89f-c6d5-88e5-a850-b7b8978e3ceb",` +
		`"extTransaction-id":"f4a03bca-1e21-4e41-9887-da491b2d8160",` +
		`"statusDescription":"Payment is waiting for the customer's approval"}`, 200},
	"payment, web": {`{"status":201,"message":"OK","pay_token":"-KmUuK-s8UtcEfdDH50Wsz-dK2fvp4o2","payment_url":` +
		`"https://pay.example/-KmUuK-s8UtcEfdDH50Wsz-dK2fvp4o2","notif_token":"Hrqn0FKNEQQ1gtoXbCi3BR-AoyBfk1TD",` +
		`"state":"s"}`, 120},
	"charge": {string(finishedCharge().Response.Body), 300},
}

// TestPack checks that a stored body is read as it was, and is short.
func TestPack(t *testing.T) {
	for name, c := range bodies {
		t.Run(name, func(t *testing.T) {
			stored := packed(c.body).pack()
			t.Logf("%d bytes for %d", len(stored), len(c.body))
			if len(stored) > c.most {
				t.Errorf("%d bytes, want at most %d", len(stored), c.most)
			}
			got, err := unpack(stored)
			if err != nil || string(got) != c.body {
				t.Errorf("read %q and %v, want %q", got, err, c.body)
			}
		})
	}
}

// storedBodies are stored forms of the past, in base64 as the console shows them, by the name in bodies.
var storedBodies = map[string]string{
	"payment, web": "AVXpBkAtS21VdUstczhVdGNFZmRESDUwV3N6LWRLMmZ2cDRvMhWqAwJfHYkHGHBheS5leGFtcGxlL0dFHbUHQEhycW4wRktO" +
		"RVFRMWd0b1hiQ2kzQlItQW95QmZrMVRED54FDmUiOiJzIn0=",
	"payment, ussd": "AUmKBg5zYW5kYm94DZwCV+oFBjUwMB3tBRZEZW1vU2hvcF8yMAsBKakDE6MCBiI6IhEwP4UGAnMlhgYCNwtgAjALgQEX" +
		"8gQN0gVIOTNkN2U4OWYtYzZkNS04OGU1LWE4NTAtYjdiODk3OGUzY2ViH7MGHDExLTI3IDAwOjUwOjI5L8EGT1gp5QZIZjRhMDNiY2EtMWUy" +
		"MS00ZTQxLTk4ODctZGE0OTFiMmQ4MTYwjwGJBw==",
}

// TestStoredBodiesStayReadable reads stored forms of the past. A change of the dictionary or of the steps would break
// the response of each stored transaction. A body of before there was a short form is read as it is.
func TestStoredBodiesStayReadable(t *testing.T) {
	for name, text := range storedBodies {
		stored, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unpack(stored)
		if err != nil || string(got) != bodies[name].body {
			t.Errorf("%s: read %q and %v, want %q", name, got, err, bodies[name].body)
		}
		plain := []byte(bodies[name].body)
		if got, err := unpack(plain); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: as it is: read %q and %v", name, got, err)
		}
	}
}

// TestUnpackRefuses checks that a damaged form is an error that contains no value.
func TestUnpackRefuses(t *testing.T) {
	for name, stored := range map[string]string{
		"a number without an end":    "\x01\x80",
		"fewer bytes than announced": "\x01\x08abc",
		"a copy without a distance":  "\x01\x0b",
		"a distance of 0":            "\x01\x0b\x00",
		"a distance too far back":    "\x01\x0b\xff\xff\x03",
		"too long a step":            "\x01\xff\xff\xff\xff\x7f\x01",
		"too long a body":            "\x01\x02a" + strings.Repeat("\xff\xff\x1f\x01", 3),
	} {
		got, err := unpack([]byte(stored))
		if got != nil || !errors.Is(err, errPacked) && !errors.Is(err, errTooLong) {
			t.Errorf("%s: %d bytes were read, %v", name, len(got), err)
		}
	}
}

// FuzzPack: each body is read as it was stored, in either form, and the short one is hardly longer. No stored form
// makes unpack panic, or return more than its limit.
func FuzzPack(f *testing.F) {
	for _, c := range bodies {
		f.Add([]byte(c.body))
		f.Add(packed(c.body).pack())
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		stored := packed(body).pack()
		got, err := unpack(stored)
		if err != nil || !bytes.Equal(got, body) || len(stored) > len(body)+6 {
			t.Errorf("%s, %v, %d bytes for %d", cmp.Diff(body, got), err, len(stored), len(body))
		}
		if got, err := unpack(packed(body).plain()); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s, %v of the plain form", cmp.Diff(body, got), err)
		}
		if got, err := unpack(body); len(got) > max(maxUnpacked, len(body)) || err != nil && got != nil {
			t.Errorf("unpack returned %d bytes and %v", len(got), err)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	body := finishedCharge().Response.Body
	b.ReportAllocs()
	for b.Loop() {
		packed(body).pack()
	}
}
