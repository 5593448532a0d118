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

// maxRequestBytes bounds a request in bytes: what DynamoDB itself takes.
const maxRequestBytes = 16 << 20

// maxIdleConnections is how many connections to the table service stay open between calls: one for each function that may run.
const maxIdleConnections = 128

// ProxyDynamoDB stands in front of a DynamoDB endpoint and passes requests and answers on byte by byte. Only the access key is
// another, which leaves a signature that does not fit: the engines for development check none.
func (r *Recorder) ProxyDynamoDB(endpoint *url.URL) http.Handler {
	transport := &http.Transport{MaxIdleConns: maxIdleConnections, MaxIdleConnsPerHost: maxIdleConnections, DisableCompression: true}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(endpoint)
			p.Out.Host = p.In.Host
		},
		// A service that is not there must not look like one that answers.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if function := r.callingFunction(request); function != "" {
			body, complete := bufferBody(w, request)
			if !complete {
				return
			}
			r.addCalls(function, tablePermissions(request.Header.Get("X-Amz-Target"), body))
			authorization := request.Header.Get("Authorization")
			request.Header.Set("Authorization", strings.Replace(authorization, "Credential="+accessKeyOf(request.Header)+"/", "Credential="+r.runAccessKey+"/", 1))
		}
		proxy.ServeHTTP(w, request)
	})
}

// WrapSecretsManager stands in front of the local Secrets Manager.
func (r *Recorder) WrapSecretsManager(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if function := r.callingFunction(request); function != "" {
			body, complete := bufferBody(w, request)
			if !complete {
				return
			}
			r.addCalls(function, secretPermissions(request.Header.Get("X-Amz-Target"), body))
		}
		next.ServeHTTP(w, request)
	})
}

// bufferBody reads a request's body and puts it back. It answers where there is too much of it.
func bufferBody(w http.ResponseWriter, request *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxRequestBytes))
	if err != nil {
		http.Error(w, "the request is too large, or was cut", http.StatusRequestEntityTooLarge)
		return nil, false
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}
