package sandbox

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxBodyBytes is the longest request body in bytes, of the operator API and of the control port.
const maxBodyBytes = 64 << 10

var (
	amountPattern   = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,12})?$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
)

// requireOperatorToken guards the operator API with the bearer token. Each call has a connection of its own: on a reused one a client
// may take a cut for a stale connection and send again by itself, and 1005 would be lost on some callers and not on
// others.
func (s *Sandbox) requireOperatorToken(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		requireToken(s.config.Tokens, next).ServeHTTP(w, r)
	})
}

// requireControlToken guards the control port with its own bearer tokens, where it has some.
func (s *Sandbox) requireControlToken(next http.HandlerFunc) http.Handler {
	if len(s.config.ControlTokens) == 0 {
		return next
	}
	return requireToken(s.config.ControlTokens, next)
}

// requireTestsToken guards what a merchant's engineer needs of the control port: its own tokens open that too.
func (s *Sandbox) requireTestsToken(next http.HandlerFunc) http.Handler {
	if len(s.config.ControlTokens) == 0 {
		return next
	}
	return requireToken(slices.Concat(s.config.ControlTokens, s.config.TestsTokens), next)
}

// requireToken lets a call with one of the bearer tokens through.
func requireToken(tokens []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Authorization")
		scheme, token, _ := strings.Cut(header, " ")
		switch {
		case header == "":
			errorResponse(http.StatusUnauthorized, "900902", nil).write(w)
		case !strings.EqualFold(scheme, "Bearer") || !containsToken(tokens, strings.TrimSpace(token)):
			errorResponse(http.StatusUnauthorized, "900901", nil).write(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// containsToken compares in a time that tells nothing of the tokens.
func containsToken(tokens []string, token string) bool {
	found := 0
	for _, known := range tokens {
		found |= subtle.ConstantTimeCompare([]byte(known), []byte(token))
	}
	return found == 1
}

// readBody reads a JSON body into v and returns its bytes; the answer says what is wrong with it, nil if nothing.
func readBody(w http.ResponseWriter, r *http.Request, v any) ([]byte, *response) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != jsonType {
		return nil, invalidPartResponse(http.StatusUnsupportedMediaType, "content-type")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		return nil, invalidPartResponse(http.StatusRequestEntityTooLarge, "body")
	}
	err = json.Unmarshal(raw, v)
	if err != nil {
		return nil, invalidPartResponse(http.StatusBadRequest, "body")
	}
	return raw, nil
}

func invalidPartResponse(status int, part string) *response {
	a := errorResponse(status, "SVC0002", []string{part})
	return &a
}

// requestChecker keeps the first fault of a request.
type requestChecker struct{ firstFault *response }

func (c *requestChecker) fail(a *response) {
	if c.firstFault == nil {
		c.firstFault = a
	}
}

func (c *requestChecker) require(part, value string) {
	if value == "" {
		c.fail(invalidPartResponse(http.StatusBadRequest, part))
	}
}

func (c *requestChecker) requireHeader(r *http.Request, name string) {
	c.require(name, r.Header.Get(name))
}

func (c *requestChecker) requireOneOf(part, value string, valid ...string) {
	if !slices.Contains(valid, value) {
		a := errorResponse(http.StatusBadRequest, "SVC0003", []string{part, strings.Join(valid, ", ")})
		c.fail(&a)
	}
}

func (c *requestChecker) checkAmount(part, text string) {
	if !amountPattern.MatchString(text) || strings.Trim(text, "0.") == "" {
		c.fail(invalidPartResponse(http.StatusBadRequest, part))
	}
}

func (c *requestChecker) checkCurrency(part, text string) {
	if !currencyPattern.MatchString(text) {
		c.fail(invalidPartResponse(http.StatusBadRequest, part))
	}
}

func (c *requestChecker) checkURL(part, text string) {
	if !isWebURL(text) {
		c.fail(invalidPartResponse(http.StatusBadRequest, part))
	}
}

func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}

// amountText is the characters of an amount that came as a string or as a number.
func amountText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}

// fingerprint is the SHA-256 of a body in canonical form, without a payment's otp_code (which never counts) and
// notif_url (which carries a signature that changes with its key), and of the headers that route.
func fingerprint(raw []byte, headers ...string) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var body map[string]any
	_ = decoder.Decode(&body) // it was decoded before
	delete(body, "otp_code")
	delete(body, "notif_url")
	sum := sha256.New()
	_, _ = sum.Write(encode(headers))
	_, _ = sum.Write(encode(body))
	return hex.EncodeToString(sum.Sum(nil))
}

// randomBytes reads n bytes; a source that fails is a broken machine.
func (s *Sandbox) randomBytes(n int) []byte {
	b := make([]byte, n)
	_, err := io.ReadFull(s.config.Rand, b)
	if err != nil {
		panic("sandbox: no random bytes")
	}
	return b
}

// newToken is 192 random bits, safe in a URL.
func (s *Sandbox) newToken() string { return base64.RawURLEncoding.EncodeToString(s.randomBytes(24)) }

// newUUID is a random UUID (RFC 9562, version 4).
func (s *Sandbox) newUUID() string {
	b := s.randomBytes(16)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	text := hex.EncodeToString(b)
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}
