package awscalls

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// maxRequestBytes bounds a request; it is DynamoDB's own limit.
const maxRequestBytes = 16 << 20

// WrapDynamoDB returns a handler that records calls and passes them to a proxy of DynamoDB. It replaces the access key,
// so the signature is no longer valid: databases for development do not check it.
func (r *Recorder) WrapDynamoDB(proxy http.Handler) http.Handler {
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

// record returns a handler that records the functions' calls before next handles them. A request without an operation
// is not a call: it is an early connection or a health check.
func (r *Recorder) record(callsOf func(operation string, body []byte) []Call, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, operation, isCall := strings.Cut(request.Header.Get("X-Amz-Target"), ".")
		if function := r.functionsByKey[accessKeyOf(request.Header)]; function != "" && isCall {
			body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxRequestBytes))
			if err != nil {
				http.Error(w, "the request is too large or incomplete", http.StatusRequestEntityTooLarge)
				return
			}
			request.Body = io.NopCloser(bytes.NewReader(body))
			r.addCalls(function, callsOf(operation, body))
		}
		next.ServeHTTP(w, request)
	})
}
