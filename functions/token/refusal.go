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

// refused is a refusal's body: RFC 6749's fields and ours.
type refused struct {
	Error            string          `json:"error"`
	ErrorDescription string          `json:"error_description"`
	RequestError     json.RawMessage `json:"requestError"`
}

func invalidRequest(part, description string) *refusal {
	return &refusal{
		code: codeInvalidRequest, description: description, status: http.StatusBadRequest, fault: fault.In(fault.Invalid, part),
	}
}

func invalidClient(kind fault.Kind, description string) *refusal {
	return &refusal{
		code: codeInvalidClient, description: description, status: http.StatusUnauthorized,
		fault: &fault.Fault{Kind: kind, Cause: errors.New(description)},
	}
}

// unknownClient does not tell a wrong secret from a client that does not exist or is suspended.
func unknownClient() *refusal {
	return invalidClient(fault.BadCredentials, "client authentication failed")
}

func unable(cause error) *refusal {
	return &refusal{
		code: codeServerError, description: "no token can be issued now", status: http.StatusInternalServerError,
		fault: fault.Because(cause),
	}
}

// response writes the answer and notes the refusal in the request's line.
func (r *refusal) response(req *apigw.Request) apigw.Response {
	ours := oneapi.Render(r.fault)
	req.Event.SetErrorID(ours.ID)
	req.Event.SetCause(r.fault)
	var body struct {
		RequestError json.RawMessage `json:"requestError"`
	}
	if err := json.Unmarshal(ours.Body, &body); err != nil {
		body.RequestError = json.RawMessage("{}") // cannot be: oneapi writes an object
	}
	answer := apigw.Response{Status: r.status, Header: header(), Body: strictjson.Marshal(refused{
		Error: r.code, ErrorDescription: r.description, RequestError: body.RequestError,
	})}
	if r.status == http.StatusUnauthorized {
		answer.Header["WWW-Authenticate"] = `Basic realm="gateway", charset="UTF-8"`
	}
	return answer
}
