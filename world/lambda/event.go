package lambda

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	smithyrand "github.com/aws/smithy-go/rand"
)

// withDefaults sets the fields that the caller left empty.
func (e Event) withDefaults(function string) Event {
	e.ID = cmp.Or(e.ID, NewRequestID())
	e.Trace = cmp.Or(e.Trace, NewTrace(time.Now()))
	e.ARN = cmp.Or(e.ARN, "arn:aws:lambda:us-east-1:000000000000:function:"+function)
	return e
}

// NewRequestID returns a random UUID (RFC 9562, version 4).
func NewRequestID() string {
	id, _ := smithyrand.NewUUID(rand.Reader).GetUUID() // rand.Reader never fails since Go 1.24
	return id
}

// NewTrace returns an X-Ray trace header that is not sampled.
func NewTrace(now time.Time) string {
	var b [20]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("Root=1-%08x-%x;Parent=%x;Sampled=0", now.Unix(), b[:12], b[12:])
}

// errorResult returns an error of the runtime itself as Lambda's error document.
func errorResult(kind, id, text string) Result {
	document, _ := json.Marshal(map[string]string{ // strings always marshal
		"errorType":    kind,
		"errorMessage": "RequestId: " + id + " Error: " + text,
	})
	return Result{Payload: document, FunctionError: true}
}
