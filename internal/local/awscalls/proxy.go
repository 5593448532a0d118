package awscalls

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// maxRequestBytes bounds a request; it is DynamoDB's own limit.
const maxRequestBytes = 16 << 20

// maxIdleConnections bounds the connections to DynamoDB that stay open: one for each function that may run.
const maxIdleConnections = 128

// ProxyDynamoDB returns a proxy that records calls and passes them to a DynamoDB endpoint. It replaces the access key,
// so the signature is no longer valid: databases for development do not check it.
func (r *Recorder) ProxyDynamoDB(endpoint *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{
			MaxIdleConns: maxIdleConnections, MaxIdleConnsPerHost: maxIdleConnections, DisableCompression: true,
		},
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(endpoint)
			p.Out.Host = p.In.Host
		},
		// Cut the connection, so that an unreachable service does not look like one that responds.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	return r.record(r.tableCalls, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if key := accessKeyOf(request.Header); r.functionsByKey[key] != "" {
			authorization := request.Header.Get("Authorization")
			request.Header.Set("Authorization",
				strings.Replace(authorization, "Credential="+key+"/", "Credential="+r.runAccessKey+"/", 1))
		}
		proxy.ServeHTTP(w, request)
	}))
}

// WrapSecretsManager returns a handler that records calls and passes them to the local Secrets Manager.
func (r *Recorder) WrapSecretsManager(next http.Handler) http.Handler {
	return r.record(r.secretCalls, next)
}

// record returns a handler that records the functions' calls before next handles them.
func (r *Recorder) record(callsOf func(target string, body []byte) []Call, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if function := r.functionsByKey[accessKeyOf(request.Header)]; function != "" {
			body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxRequestBytes))
			if err != nil {
				http.Error(w, "the request is too large or incomplete", http.StatusRequestEntityTooLarge)
				return
			}
			request.Body = io.NopCloser(bytes.NewReader(body))
			r.addCalls(function, callsOf(request.Header.Get("X-Amz-Target"), body))
		}
		next.ServeHTTP(w, request)
	})
}
