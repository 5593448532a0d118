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

// The errors of RFC 6749, 5.2, that can come; server_error is the word of its section 4.1.2.1.
const (
	codeInvalidRequest   = "invalid_request"
	codeInvalidClient    = "invalid_client"
	codeUnsupportedGrant = "unsupported_grant_type"
	codeServerError      = "server_error"
)

// refusal is an answer that brings no token, in both vocabularies.
type refusal struct {
	code        string
	description string // a fixed text: nothing of the request is repeated
	status      int
	fault       *fault.Fault
}

// refusalBody is a refusal's body: RFC 6749's fields and ours.
type refusalBody struct {
	Error            string          `json:"error"`
	ErrorDescription string          `json:"error_description"`
	RequestError     json.RawMessage `json:"requestError"`
}

func invalidRequest(part, description string) *refusal {
	return &refusal{
		code: codeInvalidRequest, description: description, status: http.StatusBadRequest, fault: fault.ForPart(fault.InvalidPart, part),
	}
}

func invalidClient(kind fault.Kind, description string) *refusal {
	return &refusal{
		code: codeInvalidClient, description: description, status: http.StatusUnauthorized,
		fault: &fault.Fault{Kind: kind, Cause: errors.New(description)},
	}
}

// authenticationFailed does not tell a wrong secret from a client that does not exist or is suspended.
func authenticationFailed() *refusal {
	return invalidClient(fault.InvalidCredentials, "client authentication failed")
}

func serverError(cause error) *refusal {
	return &refusal{
		code: codeServerError, description: "no token can be issued now", status: http.StatusInternalServerError,
		fault: fault.NewInternal(cause),
	}
}

// response writes the answer and notes the refusal in the request's line.
func (r *refusal) response(req *apigw.Request) apigw.Response {
	gatewayError := oneapi.Render(r.fault)
	req.LogLine.SetErrorID(gatewayError.MessageID)
	req.LogLine.SetCause(r.fault)
	var body struct {
		RequestError json.RawMessage `json:"requestError"`
	}
	if err := json.Unmarshal(gatewayError.Body, &body); err != nil {
		body.RequestError = json.RawMessage("{}") // cannot be: oneapi writes an object
	}
	response := apigw.Response{Status: r.status, Header: noStoreHeaders(), Body: strictjson.Marshal(refusalBody{
		Error: r.code, ErrorDescription: r.description, RequestError: body.RequestError,
	})}
	if r.status == http.StatusUnauthorized {
		response.Header["WWW-Authenticate"] = `Basic realm="gateway", charset="UTF-8"`
	}
	return response
}
