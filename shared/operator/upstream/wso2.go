package upstream

import (
	"net/http"
	"slices"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
)

// WSO2Refusal returns the code of a refusal by a WSO2 API gateway in front of a platform, "" for any other response. It
// is 9008xx for rate limits and 9009xx for credentials, with 401, 403 or 429. The platform has then not received the
// request. The gateway writes JSON, or XML although the request accepts JSON only.
func WSO2Refusal(x Exchange) string {
	statuses := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}
	if x.Err != nil || !slices.Contains(statuses, x.Status) {
		return ""
	}
	code := x.ErrorCode("fault.code", "code")
	if _, isDocument := x.Document(); !isDocument {
		_, inside, _ := strings.Cut(string(x.Body), "<ams:fault")
		_, inside, _ = strings.Cut(inside, "<ams:code>")
		code, _, _ = strings.Cut(inside, "</ams:code>")
	}
	isOwn := strings.HasPrefix(code, "9008") || strings.HasPrefix(code, "9009")
	if !isOwn || len(code) != 6 || !ascii.IsDigits(code) {
		return ""
	}
	return code
}

// NotAppliedByWSO2 returns the outcome of a refusal with a code of WSO2Refusal.
func NotAppliedByWSO2(code string, cause error) operator.Result {
	if strings.HasPrefix(code, "9008") {
		return NotApplied(fault.OperatorUnavailable, cause)
	}
	return NotApplied(fault.IntegrationRejected, cause)
}
