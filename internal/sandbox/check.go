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

// maxBody is the longest request body in bytes, of the operator API and of the control port.
const maxBody = 64 << 10

var (
	amountForm   = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,12})?$`)
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
)

// operator guards the operator API with the bearer token. Each call has a connection of its own: on a reused one a client
// may take a cut for a stale connection and send again by itself, and 1005 would be lost on some callers and not on
// others.
func (s *Sandbox) operator(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		allow(s.config.Tokens, next).ServeHTTP(w, r)
	})
}

// control guards the control port with its own bearer tokens, where it has some.
func (s *Sandbox) control(next http.HandlerFunc) http.Handler {
	if len(s.config.ControlTokens) == 0 {
		return next
	}
	return allow(s.config.ControlTokens, next)
}

// tests guards what a merchant's engineer needs of the control port: its own tokens open that too.
func (s *Sandbox) tests(next http.HandlerFunc) http.Handler {
	if len(s.config.ControlTokens) == 0 {
		return next
	}
	return allow(slices.Concat(s.config.ControlTokens, s.config.TestsTokens), next)
}

// allow lets a call with one of the bearer tokens through.
func allow(tokens []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Authorization")
		scheme, token, _ := strings.Cut(header, " ")
		switch {
		case header == "":
			refusal(http.StatusUnauthorized, "900902", nil).write(w)
		case !strings.EqualFold(scheme, "Bearer") || !oneOf(tokens, strings.TrimSpace(token)):
			refusal(http.StatusUnauthorized, "900901", nil).write(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// oneOf compares in a time that tells nothing of the tokens.
func oneOf(tokens []string, token string) bool {
	found := 0
	for _, known := range tokens {
		found |= subtle.ConstantTimeCompare([]byte(known), []byte(token))
	}
	return found == 1
}

// readBody reads a JSON body into v and returns its bytes; the answer says what is wrong with it, nil if nothing.
func readBody(w http.ResponseWriter, r *http.Request, v any) ([]byte, *answer) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != jsonType {
		return nil, invalid(http.StatusUnsupportedMediaType, "content-type")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, invalid(http.StatusRequestEntityTooLarge, "body")
	}
	err = json.Unmarshal(raw, v)
	if err != nil {
		return nil, invalid(http.StatusBadRequest, "body")
	}
	return raw, nil
}

func invalid(status int, part string) *answer {
	a := refusal(status, "SVC0002", []string{part})
	return &a
}

// checker keeps the first fault of a request.
type checker struct{ fault *answer }

func (c *checker) fail(a *answer) {
	if c.fault == nil {
		c.fault = a
	}
}

func (c *checker) need(part, value string) {
	if value == "" {
		c.fail(invalid(http.StatusBadRequest, part))
	}
}

func (c *checker) header(r *http.Request, name string) { c.need(name, r.Header.Get(name)) }

func (c *checker) exactly(part, value string, valid ...string) {
	if !slices.Contains(valid, value) {
		a := refusal(http.StatusBadRequest, "SVC0003", []string{part, strings.Join(valid, ", ")})
		c.fail(&a)
	}
}

func (c *checker) amount(part, text string) {
	if !amountForm.MatchString(text) || strings.Trim(text, "0.") == "" {
		c.fail(invalid(http.StatusBadRequest, part))
	}
}

func (c *checker) currency(part, text string) {
	if !currencyForm.MatchString(text) {
		c.fail(invalid(http.StatusBadRequest, part))
	}
}

func (c *checker) url(part, text string) {
	if !webAddress(text) {
		c.fail(invalid(http.StatusBadRequest, part))
	}
}

func webAddress(text string) bool {
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

// random reads n bytes; a source that fails is a broken machine.
func (s *Sandbox) random(n int) []byte {
	b := make([]byte, n)
	_, err := io.ReadFull(s.config.Rand, b)
	if err != nil {
		panic("sandbox: no random bytes")
	}
	return b
}

// token is 192 random bits, safe in a URL.
func (s *Sandbox) token() string { return base64.RawURLEncoding.EncodeToString(s.random(24)) }

// uuid is a random UUID (RFC 9562, version 4).
func (s *Sandbox) uuid() string {
	b := s.random(16)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	text := hex.EncodeToString(b)
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}
