package runtimeapi

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// withDefaults fills in what the caller left to us.
func (e Event) withDefaults(function string) Event {
	if e.ID == "" {
		e.ID = NewRequestID()
	}
	if e.Trace == "" {
		e.Trace = NewTrace(time.Now())
	}
	if e.ARN == "" {
		e.ARN = "arn:aws:lambda:us-east-1:000000000000:function:" + function
	}
	return e
}

// NewRequestID makes a request id: a random UUID (RFC 9562, version 4).
func NewRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// NewTrace makes an X-Ray trace header that is not sampled.
func NewTrace(now time.Time) string {
	var b [20]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", now.Unix(), hex.EncodeToString(b[:12]), hex.EncodeToString(b[12:]))
}

// errorResult is the result that the runtime itself makes of an invocation, in Lambda's error document.
func errorResult(kind, id, text string) Result {
	document, _ := json.Marshal(map[string]string{ // strings always marshal
		"errorType":    kind,
		"errorMessage": "RequestId: " + id + " Error: " + text,
	})
	return Result{Payload: document, FunctionError: true}
}
