package token

import (
	"encoding/json"
	"errors"
	"net/http"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/strictjson"
)

// The error codes of RFC 6749, 5.2 that this endpoint returns; server_error is from section 4.1.2.1.
const (
	codeInvalidRequest   = "invalid_request"
	codeInvalidClient    = "invalid_client"
	codeUnsupportedGrant = "unsupported_grant_type"
	codeServerError      = "server_error"
)

// refusal is a response without a token: an error of RFC 6749 and the fault of this API.
type refusal struct {
	code        string
	description string // a fixed text without any part of the request
	status      int
	fault       *fault.Fault
}

// refusalBody is the body of a refusal: the fields of RFC 6749 and the requestError of this API.
type refusalBody struct {
	Error            string          `json:"error"`
	ErrorDescription string          `json:"error_description"`
	RequestError     json.RawMessage `json:"requestError"`
}

func invalidRequest(part, description string) *refusal {
	return &refusal{codeInvalidRequest, description, http.StatusBadRequest, fault.ForPart(fault.InvalidPart, part)}
}

func invalidClient(kind fault.Kind, description string) *refusal {
	clientFault := &fault.Fault{Kind: kind, Cause: errors.New(description)}
	return &refusal{codeInvalidClient, description, http.StatusUnauthorized, clientFault}
}

// authenticationFailed is the same for a wrong secret, an unknown client and a suspended one.
func authenticationFailed() *refusal {
	return invalidClient(fault.InvalidCredentials, "client authentication failed")
}

func serverError(cause error) *refusal {
	const description = "no token can be issued now"
	return &refusal{codeServerError, description, http.StatusInternalServerError, fault.NewInternal(cause)}
}

// response returns the response of a refusal and records the refusal in the request's log line.
func (r *refusal) response(req *apigw.Request) apigw.Response {
	gatewayError := oneapi.Render(r.fault)
	req.LogLine.SetErrorID(gatewayError.MessageID)
	req.LogLine.SetCause(r.fault)
	var body struct {
		RequestError json.RawMessage `json:"requestError"`
	}
	if err := json.Unmarshal(gatewayError.Body, &body); err != nil {
		body.RequestError = json.RawMessage("{}") // unreachable: oneapi always renders an object
	}
	response := apigw.Response{Status: r.status, Header: noStoreHeaders(), Body: strictjson.Marshal(refusalBody{
		Error: r.code, ErrorDescription: r.description, RequestError: body.RequestError,
	})}
	if r.status == http.StatusUnauthorized {
		response.Header["WWW-Authenticate"] = `Basic realm="gateway", charset="UTF-8"`
	}
	return response
}
