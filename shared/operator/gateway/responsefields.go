package gateway

import (
	"net/url"
	"strings"

	"mobilegateway/shared/strictjson"
)

// Limits of texts in an operator's response, in characters. A longer text counts as absent.
const (
	maxFieldLength = 512
	maxURLLength   = 4096
)

// textField returns a text of a response; "" if it is absent, empty, too long, of another type or not printable. The
// reader's faults do not matter: a response is either complete or not.
func textField(response *strictjson.Reader, path string) string {
	text, _ := response.OptionalText(path, maxFieldLength)
	return text
}

// scalarField returns a value of at most 64 characters that operators send as a text or as a number; "" if it is
// absent. Amounts, phone numbers and ids of unspecified type are such values.
func scalarField(response *strictjson.Reader, path string) string {
	text, _ := response.Number(path)
	return text
}

// urlField returns an absolute http or https URL; "" for anything else.
func urlField(response *strictjson.Reader, path string) string {
	text, _ := response.OptionalText(path, maxURLLength)
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return text
}

// smsRequestID returns the id in an SMS request's resourceURL, ".../requests/<id>/deliveryInfos". In another form it is
// the last segment. "" gives "".
func smsRequestID(resourceURL string) string {
	trimmed := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(resourceURL, "/"), "/deliveryInfos"), "/")
	id := trimmed[strings.LastIndex(trimmed, "/")+1:]
	if len(id) > maxFieldLength {
		return ""
	}
	return id
}
