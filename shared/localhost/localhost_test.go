package localhost_test

import (
	"testing"

	"mobilegateway/shared/localhost"
)

func TestHosts(t *testing.T) {
	cases := map[string]struct{ loopback, near bool }{
		"localhost":                        {true, true},
		"127.0.0.1":                        {true, true},
		"127.255.0.9":                      {true, true},
		"::1":                              {true, true},
		"::ffff:127.0.0.1":                 {true, true},
		"10.0.0.1":                         {false, true},
		"172.17.0.1":                       {false, true},
		"192.168.1.7":                      {false, true},
		"fd00::1":                          {false, true},
		"::ffff:10.0.0.1":                  {false, true},
		"172.32.0.1":                       {false, false},
		"169.254.169.254":                  {false, false}, // the metadata of a machine
		"100.64.0.1":                       {false, false},
		"0.0.0.0":                          {false, false},
		"::":                               {false, false},
		"fe80::1":                          {false, false},
		"8.8.8.8":                          {false, false},
		"2130706433":                       {false, false},
		"0x7f.0.0.1":                       {false, false},
		"localhost.":                       {false, false},
		"evil.localhost":                   {false, false},
		"127.0.0.1.evil.example":           {false, false},
		"dynamodb.eu-west-1.amazonaws.com": {false, false},
		"localhost.localstack.cloud":       {false, false},
		"10.0.0.1:80":                      {false, false},
		"":                                 {false, false},
	}
	for host, want := range cases {
		if loopback, near := localhost.IsLoopback(host), localhost.IsNear(host); loopback != want.loopback ||
			near != want.near {
			t.Errorf("%q is loopback: %v, near: %v; want %v, %v", host, loopback, near, want.loopback, want.near)
		}
	}
}
