package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/strictjson"
)

// Limits of texts in an operator's response, in characters. A longer text counts as absent.
const (
	MaxFieldLength = 512
	MaxURLLength   = 4096

	maxCallbackText = 255
)

// CallbackDocument returns the body of a callback. One that is not a JSON object with each key once counts as empty.
func CallbackDocument(body []byte) *strictjson.Reader {
	doc, err := strictjson.Parse(body)
	if err != nil {
		doc, _ = strictjson.Parse([]byte("{}")) // never an error
	}
	return doc
}

// Text returns a text of a response; "" if it is absent, empty, too long, of another type or not printable. The
// reader's faults do not matter: a response is either complete or not.
func Text(response *strictjson.Reader, path string) string {
	text, _ := response.OptionalText(path, MaxFieldLength)
	return text
}

// TextOrNumber returns a value of at most 64 characters that operators send as a text or as a number; "" if it is
// absent. Amounts, phone numbers and ids of unspecified type are such values.
func TextOrNumber(response *strictjson.Reader, path string) string {
	text, _ := response.Number(path)
	return text
}

// OptionalTextOrNumber returns a value of at most 255 characters that a callback has as a text or as a number; "" if it
// is absent, empty or too long.
func OptionalTextOrNumber(doc *strictjson.Reader, path string) string {
	if text, present := doc.OptionalText(path, maxCallbackText); present {
		return text
	}
	return doc.OptionalNumber(path)
}

// IsIdentifier reports whether a text has only letters and digits of ASCII, _ and -. It is then safe in a path.
func IsIdentifier(text string) bool {
	return ascii.ConsistsOf(text, ascii.Letters+ascii.Digits+"_-")
}

// URL returns an absolute http or https URL; "" for anything else.
func URL(response *strictjson.Reader, path string) string {
	text, _ := response.OptionalText(path, MaxURLLength)
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return text
}

// NotifToken derives the notif_token of a page, for a platform that has none: from our key and the id of the page.
func NotifToken(key, id string) string {
	sum := sha256.Sum256([]byte(key + "\n" + id))
	return hex.EncodeToString(sum[:16])
}
