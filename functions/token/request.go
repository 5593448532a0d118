package token

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
)

// The parameters of the request (RFC 6749, 4.4.2 and 2.3.1).
const (
	partGrantType     = "grant_type"
	partClientID      = "client_id"
	partClientSecret  = "client_secret"
	partAuthorization = "Authorization"
	partBody          = "body"
	partContentType   = "Content-Type"

	clientCredentials = "client_credentials"
	formType          = "application/x-www-form-urlencoded"
)

type tokenParams struct {
	grantType      string
	clientID       string
	clientSecret   string
	hasCredentials bool
}

// readTokenRequest decodes a request and checks only its form. A form without a Content-Type is accepted, a body of
// another type is not. grant_type may be in the query, because some platforms drop form bodies. A secret may not,
// because URLs are logged.
func readTokenRequest(req *apigw.Request) (*tokenParams, *refusal) {
	form, refused := readForm(req)
	if refused != nil {
		return nil, refused
	}
	if _, inURL := req.Query[partClientSecret]; inURL {
		return nil, invalidRequest(partClientSecret, "client_secret must not be in the URL")
	}
	params := &tokenParams{grantType: form.Get(partGrantType)}
	if queryGrantType := req.Query[partGrantType]; queryGrantType != "" {
		if params.grantType != "" && params.grantType != queryGrantType {
			return nil, invalidRequest(partGrantType, "grant_type is given twice")
		}
		params.grantType = queryGrantType
	}
	return params, params.readClient(req, form)
}

// readForm decodes the form body; an empty body is an empty form.
func readForm(req *apigw.Request) (url.Values, *refusal) {
	if len(req.Body) == 0 {
		return url.Values{}, nil
	}
	mediaType, _, _ := strings.Cut(req.Header(partContentType), ";")
	if mediaType = strings.TrimSpace(mediaType); mediaType != "" && !strings.EqualFold(mediaType, formType) {
		return nil, invalidRequest(partContentType, "the body must be "+formType)
	}
	form, err := url.ParseQuery(strings.TrimSpace(string(req.Body)))
	if err != nil {
		return nil, invalidRequest(partBody, "the body is not a form")
	}
	for _, name := range []string{partGrantType, partClientID, partClientSecret} {
		if len(form[name]) > 1 {
			return nil, invalidRequest(name, name+" is given twice")
		}
	}
	return form, nil
}

// readClient finds the client's id and secret: in the Authorization header or in the form, not in both.
func (p *tokenParams) readClient(req *apigw.Request, form url.Values) *refusal {
	p.clientID, p.clientSecret = form.Get(partClientID), form.Get(partClientSecret)
	p.hasCredentials = p.clientID != "" && p.clientSecret != ""
	authorization := req.Header(partAuthorization)
	if authorization == "" {
		return nil
	}
	if req.HasConflictingHeader(partAuthorization) {
		return invalidRequest(partAuthorization, "Authorization is given twice")
	}
	id, secret, ok := parseBasicAuth(authorization)
	switch {
	case !ok:
		return authenticationFailed()
	case p.clientSecret != "", p.clientID != "" && p.clientID != id:
		return invalidRequest(partClientSecret, "the client must authenticate in one way only")
	}
	p.clientID, p.clientSecret, p.hasCredentials = id, secret, true
	return nil
}

// parseBasicAuth decodes a Basic Authorization header (RFC 7617) with form-encoded id and secret (RFC 6749, 2.3.1).
// Ours contain no character that must be encoded, but some clients encode every character.
func parseBasicAuth(authorization string) (id, secret string, ok bool) {
	scheme, encoded, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return "", "", false
	}
	id, secret, ok = strings.Cut(string(raw), ":")
	if !ok {
		return "", "", false
	}
	plainID, idErr := url.QueryUnescape(id)
	plainSecret, secretErr := url.QueryUnescape(secret)
	return plainID, plainSecret, idErr == nil && secretErr == nil
}

func (p *tokenParams) checkGrant() *refusal {
	switch p.grantType {
	case clientCredentials:
		return nil
	case "":
		missing := fault.ForPart(fault.MissingPart, partGrantType)
		return &refusal{codeInvalidRequest, "grant_type is missing", http.StatusBadRequest, missing}
	}
	unsupported := &fault.Fault{Kind: fault.ValueNotAllowed, Part: partGrantType, Value: clientCredentials}
	return &refusal{codeUnsupportedGrant, "grant_type must be " + clientCredentials, http.StatusBadRequest, unsupported}
}
