package token

import (
	"encoding/json"
	"net/http"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/strictjson"
)

// The error codes of RFC 6749, 5.2 that this endpoint returns; server_error and temporarily_unavailable
// are from section 4.1.2.1.
const (
	codeInvalidRequest   = "invalid_request"
	codeInvalidClient    = "invalid_client"
	codeUnsupportedGrant = "unsupported_grant_type"
	codeUnavailable      = "temporarily_unavailable"
	codeServerError      = "server_error"
)

// refusal is a response without a token: an error of RFC 6749 and the fault of this API.
type refusal struct {
	code        string
	description string // a fixed text without any part of the request
	status      int
	fault       *fault.Fault
}

func invalidRequest(part, description string) *refusal {
	return &refusal{codeInvalidRequest, description, http.StatusBadRequest, fault.ForPart(fault.InvalidPart, part)}
}

func invalidClient(kind fault.Kind, description error) *refusal {
	clientFault := &fault.Fault{Kind: kind, Cause: description}
	return &refusal{codeInvalidClient, description.Error(), http.StatusUnauthorized, clientFault}
}

// authenticationFailed is the same for a wrong secret and an unknown client.
func authenticationFailed() *refusal {
	return invalidClient(fault.InvalidCredentials, logsafe.New("client authentication failed"))
}

// merchantSuspended differs from authenticationFailed by one header. Use it only after the client secret has matched.
func merchantSuspended() *refusal {
	refused := authenticationFailed()
	refused.fault.Reason = merchant.ReasonSuspended
	return refused
}

func serverError(cause error) *refusal {
	const description = "no token can be issued now"
	return &refusal{codeServerError, description, http.StatusInternalServerError, fault.NewInternal(cause)}
}

// unavailable is the refusal while the key of new tokens may not sign yet (decision "key-rings").
func unavailable(cause error) *refusal {
	const description = "no token can be issued yet: try again after the seconds of Retry-After"
	notYet := &fault.Fault{Kind: fault.OperatorUnavailable, Cause: cause}
	return &refusal{codeUnavailable, description, http.StatusServiceUnavailable, notYet}
}

// rateLimited is the refusal of a request over its merchant's rate.
func rateLimited(err error) *refusal {
	const description = "too many requests: wait for the seconds of Retry-After"
	return &refusal{codeUnavailable, description, http.StatusTooManyRequests, fault.FromError(err)}
}

// response returns the response of a refusal, with the fields of RFC 6749 and the requestError of this API. It records
// the refusal in the request's log line.
func (r *refusal) response(req *apigw.Request) apigw.Response {
	gatewayError := oneapi.Render(r.fault)
	req.LogLine.SetErrorID(gatewayError.MessageID)
	req.LogLine.SetCause(r.fault)
	body := map[string]any{"error": r.code, "error_description": r.description}
	_ = json.Unmarshal(gatewayError.Body, &body) // adds requestError; oneapi always renders an object
	response := apigw.Response{Status: r.status, Header: noStoreHeaders(), Body: strictjson.Marshal(body)}
	if reason := gatewayError.Header[oneapi.HeaderErrorReason]; reason != "" {
		response.Header[oneapi.HeaderErrorReason] = reason
	}
	if wait := gatewayError.Header[oneapi.HeaderRetryAfter]; wait != "" {
		response.Header[oneapi.HeaderRetryAfter] = wait
	}
	if r.status == http.StatusUnauthorized {
		response.Header["WWW-Authenticate"] = `Basic realm="gateway", charset="UTF-8"`
	}
	return response
}
