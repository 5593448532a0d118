package dynamo

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// maxIdleConnections bounds the connections to DynamoDB that stay open: one for each function that may run.
const maxIdleConnections = 128

// NewProxy returns a handler that passes every request unchanged to a DynamoDB endpoint.
func NewProxy(endpoint *url.URL) http.Handler {
	return &httputil.ReverseProxy{
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
}
