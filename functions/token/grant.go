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
	partGrant        = "grant_type"
	partClientID     = "client_id"
	partClientSecret = "client_secret"
	partAuth         = "Authorization"
	partBody         = "body"
	partContentType  = "Content-Type"

	clientCredentials = "client_credentials"
	formType          = "application/x-www-form-urlencoded"
)

// grant is what a request asks for, and who says that it asks.
type grant struct {
	grantType    string
	clientID     string
	clientSecret string
	hasClient    bool
}

// read takes the request apart. It judges its form alone. A form without a Content-Type is accepted; a body of another
// type is refused. grant_type may stand in the query, because some platforms drop form bodies; a secret may not,
// because URLs are logged.
func read(req *apigw.Request) (*grant, *refusal) {
	form, refused := readForm(req)
	if refused != nil {
		return nil, refused
	}
	if _, leaked := req.Query[partClientSecret]; leaked {
		return nil, invalidRequest(partClientSecret, "client_secret must not be in the URL")
	}
	given := &grant{grantType: form.Get(partGrant)}
	if fromQuery := req.Query[partGrant]; fromQuery != "" {
		if given.grantType != "" && given.grantType != fromQuery {
			return nil, invalidRequest(partGrant, "grant_type is given twice")
		}
		given.grantType = fromQuery
	}
	return given, given.readClient(req, form)
}

// readForm reads the form body; an empty one is an empty form.
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
	for _, name := range []string{partGrant, partClientID, partClientSecret} {
		if len(form[name]) > 1 {
			return nil, invalidRequest(name, name+" is given twice")
		}
	}
	return form, nil
}

// readClient finds the client's id and secret: in the Authorization header or in the form, not in both.
func (g *grant) readClient(req *apigw.Request, form url.Values) *refusal {
	g.clientID, g.clientSecret = form.Get(partClientID), form.Get(partClientSecret)
	g.hasClient = g.clientID != "" && g.clientSecret != ""
	authorization := req.Header(partAuth)
	if authorization == "" {
		return nil
	}
	if req.HeaderRepeated(partAuth) {
		return invalidRequest(partAuth, "Authorization is given twice")
	}
	id, secret, ok := basic(authorization)
	switch {
	case !ok:
		return unknownClient()
	case g.clientSecret != "", g.clientID != "" && g.clientID != id:
		return invalidRequest(partClientSecret, "the client must authenticate in one way only")
	}
	g.clientID, g.clientSecret, g.hasClient = id, secret, true
	return nil
}

// basic reads a Basic Authorization header (RFC 7617). Id and secret are form-encoded in it (RFC 6749, 2.3.1); ours look
// the same either way, but for clients that encode every character.
func basic(authorization string) (id, secret string, ok bool) {
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

// checkGrant refuses every grant but the one that there is.
func (g *grant) checkGrant() *refusal {
	switch g.grantType {
	case clientCredentials:
		return nil
	case "":
		return &refusal{
			code: codeInvalidRequest, description: "grant_type is missing",
			status: http.StatusBadRequest, fault: fault.In(fault.Missing, partGrant),
		}
	}
	return &refusal{
		code: codeUnsupportedGrant, description: "grant_type must be " + clientCredentials, status: http.StatusBadRequest,
		fault: &fault.Fault{Kind: fault.NotAllowed, Part: partGrant, Value: clientCredentials},
	}
}
