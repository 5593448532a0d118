package gateway

import (
	"net/url"
	"strings"

	"mobilegateway/shared/strictjson"
)

// Limits of the texts that are taken out of an operator's answer, in characters. A longer one counts as absent.
const (
	maxFieldLength = 512
	maxURLLength   = 4096
)

// textField reads a text of an answer; "" where it is absent, empty, too long, no text or not printable. The reader's own
// faults are of no interest: an operator's answer is either complete or not.
func textField(response *strictjson.Reader, path string) string {
	text, _ := response.OptionalText(path, maxFieldLength)
	return text
}

// scalarField reads a value of at most 64 characters that operators send as a text or as a number: amounts, numbers of
// people, ids whose type the specification does not show; "" where it is absent.
func scalarField(response *strictjson.Reader, path string) string {
	text, _ := response.Number(path)
	return text
}

// urlField reads a field that is an absolute http or https URL; "" for anything else.
func urlField(response *strictjson.Reader, path string) string {
	text, _ := response.OptionalText(path, maxURLLength)
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return text
}

// smsRequestID takes an SMS request's id out of its resourceURL, ".../requests/<id>/deliveryInfosResponse"; of another form it
// takes the last segment. "" gives "".
func smsRequestID(resourceURL string) string {
	trimmed := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(resourceURL, "/"), "/deliveryInfos"), "/")
	id := trimmed[strings.LastIndex(trimmed, "/")+1:]
	if len(id) > maxFieldLength {
		return ""
	}
	return id
}
