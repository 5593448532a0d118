package sandbox

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"mobilegateway/shared/strictjson"
)

// maxBodyBytes is the longest request body in bytes, of the operator API and of the control port.
const maxBodyBytes = 64 << 10

var (
	amountPattern   = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,12})?$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
)

// closeAfterResponse closes the connection after each call. On a reused one, some clients take a cut for a stale
// connection and send the request again, so outcome 1005 would be invisible to them.
func closeAfterResponse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		next.ServeHTTP(w, r)
	})
}

// requireControlToken accepts the control tokens and the given tests tokens. Without control tokens it accepts every
// call.
func (s *Sandbox) requireControlToken(others []TestsToken, next http.Handler) http.Handler {
	if len(s.config.ControlTokens) == 0 {
		return next
	}
	tokens := slices.Clone(s.config.ControlTokens)
	for _, other := range others {
		tokens = append(tokens, other.Token)
	}
	return requireToken(tokens, next)
}

// requireToken accepts a call with one of the bearer tokens and refuses all others with 401.
func requireToken(tokens []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch token := bearerToken(r); {
		case r.Header.Get("Authorization") == "":
			errorResponse("900902").write(w)
		case !containsToken(tokens, token):
			errorResponse("900901").write(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// bearerToken returns the token of a request, "" for none or another scheme.
func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// containsToken takes the same time for every token of one length, so that timing reveals none.
func containsToken(tokens []string, token string) bool {
	found := 0
	for _, known := range tokens {
		found |= subtle.ConstantTimeCompare([]byte(known), []byte(token))
	}
	return found == 1
}

// readRequest reads a JSON body into v, runs check, and returns the body's bytes. If the request is not valid, it
// writes the response to the first fault and returns false.
func readRequest(w http.ResponseWriter, r *http.Request, v any, check func(c *requestChecker)) (raw []byte, ok bool) {
	c := requestChecker{Request: r}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != jsonType {
		c.fail(invalidPartResponse(http.StatusUnsupportedMediaType, "content-type"))
	}
	raw, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		c.fail(invalidPartResponse(http.StatusRequestEntityTooLarge, "body"))
	}
	c.check("body", json.Unmarshal(raw, v) == nil)
	if c.firstFault == nil {
		check(&c)
	}
	if c.firstFault != nil {
		c.firstFault.write(w)
	}
	return raw, c.firstFault == nil
}

// requestChecker keeps the response to the first fault of a request.
type requestChecker struct {
	*http.Request
	firstFault *response
}

func (c *requestChecker) fail(refusal response) {
	if c.firstFault == nil {
		c.firstFault = &refusal
	}
}

func (c *requestChecker) check(part string, valid bool) {
	if !valid {
		c.fail(invalidPartResponse(http.StatusBadRequest, part))
	}
}

func (c *requestChecker) require(part, value string) { c.check(part, value != "") }

func (c *requestChecker) requireHeaders(names ...string) {
	for _, name := range names {
		c.require(name, c.Header.Get(name))
	}
}

func (c *requestChecker) requireOneOf(part, value string, valid ...string) {
	if !slices.Contains(valid, value) {
		c.fail(errorResponse("SVC0003", part, strings.Join(valid, ", ")))
	}
}

func (c *requestChecker) checkAmount(part, text string) {
	c.check(part, amountPattern.MatchString(text) && strings.Trim(text, "0.") != "")
}

func (c *requestChecker) checkCurrency(part, text string) {
	c.check(part, currencyPattern.MatchString(text))
}

func (c *requestChecker) checkURL(part, text string) {
	u, err := url.Parse(text)
	c.check(part, err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil)
}

// amountText returns the characters of an amount, which is a JSON string or number.
func amountText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}

// fingerprint is the SHA-256 of a body in canonical form and of the headers that route. It ignores a payment's
// otp_code, and its notif_url, whose signature changes with the key.
func fingerprint(raw []byte, headers ...string) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var body map[string]any
	_ = decoder.Decode(&body) // readRequest has decoded it before
	delete(body, "otp_code")
	delete(body, "notif_url")
	sum := sha256.Sum256(append(strictjson.Marshal(headers), strictjson.Marshal(body)...))
	return hex.EncodeToString(sum[:])
}

// randomBytes reads n bytes. It panics where the machine's source of randomness fails.
func (s *Sandbox) randomBytes(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.config.Rand, b); err != nil {
		panic("sandbox: no random bytes")
	}
	return b
}

// newToken returns 192 random bits as text that is safe in a URL.
func (s *Sandbox) newToken() string { return base64.RawURLEncoding.EncodeToString(s.randomBytes(24)) }

// newUUID returns a random UUID (RFC 9562, version 4).
func (s *Sandbox) newUUID() string {
	b := s.randomBytes(16)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Limits of one tests token or merchant. The control tokens, and a sandbox without any, have none.
const (
	maxOwnedPINs  = 500 // PINs of the last day
	maxOwnedSlots = 10  // slots that have not ended
)

// TestsToken opens tests and slots for one merchant, who owns the PINs and slots that it makes.
type TestsToken struct {
	// Merchant is the name with which the merchant's order_ids begin. Without it the token itself is the owner,
	// and its PINs confirm the payments of every merchant.
	Merchant string
	Token    string
}

// owner names whose PINs and slots a token makes. It does not reveal the token.
func (t TestsToken) owner() string {
	if t.Merchant != "" {
		return t.Merchant
	}
	sum := sha256.Sum256([]byte(t.Token))
	return "token-" + hex.EncodeToString(sum[:4])
}

// testsCaller is who calls tests and slots. The zero value may do everything.
type testsCaller struct{ Owner, Merchant string }

// callerOf returns whose tests token a request has: the zero value for a control token, or without any.
func (s *Sandbox) callerOf(r *http.Request) testsCaller {
	token := bearerToken(r)
	isToken := func(t TestsToken) bool { return containsToken([]string{t.Token}, token) }
	if i := slices.IndexFunc(s.config.TestsTokens, isToken); i >= 0 {
		return testsCaller{s.config.TestsTokens[i].owner(), s.config.TestsTokens[i].Merchant}
	}
	return testsCaller{}
}

// mayUse reports whether a caller may see and change what an owner has.
func (c testsCaller) mayUse(owner string) bool { return c.Owner == "" || c.Owner == owner }

// isOrderOf reports whether an order_id is a merchant's. Every order_id is one of the merchant "".
func isOrderOf(merchant, orderID string) bool {
	return merchant == "" || strings.HasPrefix(orderID, merchant+"_")
}
