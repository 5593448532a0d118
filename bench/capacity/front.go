package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

// counts are what a client has cost a server.
type counts struct{ calls, dials, fullHandshakes, resumedHandshakes int64 }

func (c counts) minus(before counts) counts {
	return counts{
		c.calls - before.calls, c.dials - before.dials, c.fullHandshakes - before.fullHandshakes,
		c.resumedHandshakes - before.resumedHandshakes,
	}
}

// front is TLS servers in front of one handler. It counts the connections and the calls of all of them, and delays each
// call. A GET without a path does not count as a call: a function opens its connections with it.
type front struct {
	calls, dials, full, resumed atomic.Int64
	delay                       time.Duration
	next                        http.Handler
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path != "/" {
		f.calls.Add(1)
	}
	time.Sleep(f.delay)
	f.next.ServeHTTP(w, r)
}

func (f *front) counts() counts {
	return counts{f.calls.Load(), f.dials.Load(), f.full.Load(), f.resumed.Load()}
}

// serve starts one more server, on an address of its own: clients resume TLS sessions by it. The caller must close it.
func (f *front) serve(certificate tls.Certificate, address net.IP) (*httptest.Server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		return nil, err
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}}
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
		VerifyConnection: func(state tls.ConnectionState) error { // also of a resumed session
			if state.DidResume {
				f.resumed.Add(1)
			} else {
				f.full.Add(1)
			}
			return nil
		},
	}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			f.dials.Add(1)
		}
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the first handshake is refused: Amazon's roots come first
	server.StartTLS()
	return server, nil
}

// newCertificate returns a certificate of addresses of this machine under an authority of its own, as public servers
// have them, and the authority in PEM.
func newCertificate(addresses []net.IP) (certificate tls.Certificate, authority []byte, err error) {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, nil, err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "capacity authority"},
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return certificate, nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "capacity"},
		NotAfter: root.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: addresses,
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, rootKey)
	if err != nil {
		return certificate, nil, err
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	return tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: key}, authority, nil
}
