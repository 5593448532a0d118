package upstream

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"mobilegateway/shared/operator"
)

// Limits of a token. No platform documents a longer life.
const (
	maxTokenLength   = 8 << 10
	maxTokenLifetime = 90 * 24 * time.Hour
)

// ReadToken reads the response to a token exchange of OAuth 2: access_token, and expires_in as a number or a text of
// seconds. Without expires_in the token serves one call. refused is true if the platform refused our credentials. Any
// other body, such as HTML with 200, is an error, which has no text of the response.
func ReadToken(x Exchange) (token string, lifetime time.Duration, refused bool, err error) {
	if x.Err != nil {
		return "", 0, false, fmt.Errorf("the token exchange failed: %w", x.Err)
	}
	if response, isDocument := x.Document(); isDocument && x.IsSuccess() {
		token, _ = response.OptionalText("access_token", maxTokenLength)
		seconds, _ := strconv.Atoi(TextOrNumber(response, "expires_in"))
		lifetime = time.Duration(max(0, min(seconds, int(maxTokenLifetime/time.Second)))) * time.Second
	}
	if operator.CheckToken(token) != nil {
		refused = x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden
		return "", 0, refused, fmt.Errorf("the token exchange responded %d without a token", x.Status)
	}
	return token, lifetime, false, nil
}
