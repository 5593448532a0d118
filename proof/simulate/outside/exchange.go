package outside

import (
	"bytes"
	"io"
	"net/http"
	"testing/iotest"
)

// response makes the HTTP response. A truncated body ends with an error after its first half.
func (e Exchange) response(request *http.Request) *http.Response {
	var body io.Reader = bytes.NewReader(e.Body)
	if e.Failure == TruncatedBody {
		body = io.MultiReader(bytes.NewReader(e.Body[:len(e.Body)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	header := e.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: e.Status, Status: http.StatusText(e.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(e.Body)), Body: io.NopCloser(body), Request: request,
	}
}

// newResponse is a complete response with pairs of header names and values.
func newResponse(status int, body string, header ...string) Exchange {
	e := Exchange{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
	for i := 0; i+1 < len(header); i += 2 {
		e.Header.Set(header[i], header[i+1])
	}
	return e
}
