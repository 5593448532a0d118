package carrierapi

import (
	"runtime"
	"strings"
	"testing"

	"mobilegateway/shared/operator/upstream"
)

// An operator's response of 256 KiB costs at most 8 MB for any content.
func TestReadingAResponseHasBoundedCost(t *testing.T) {
	const maxAllocated = 8_000_000
	inError := func(variables string) string {
		return `{"requestError":{"serviceException":{"messageId":"SVC0001","variables":` + variables + `}}}`
	}
	fill := func(size int, before, item, after string) string {
		return before + strings.Repeat(item+",", (size-len(before)-len(after))/(len(item)+1)-1) + item + after
	}
	longKey := strings.Repeat("k", upstream.MaxResponseBytes/2)
	bodies := map[string]string{
		"elements under a long key": fill(upstream.MaxResponseBytes, `{"`+longKey+`":[`, `0`, `]}`),
		"objects under a long key":  fill(upstream.MaxResponseBytes, `{"`+longKey+`":[`, `{"":0}`, `]}`),
		"empty objects":             fill(upstream.MaxResponseBytes, `{"a":[`, `{}`, `]}`),
		"many variables":            inError(fill(64<<10-100, `[`, `0`, `]`)),
		"variables with many items": inError(fill(64<<10-100, `[[`, `""`, `]]`)),
		"many members":              fill(64<<10, `{"requestError":{"a":[`, `{"":0}`, `]}}`),
	}
	for name, body := range bodies {
		for _, status := range []int{200, 400, 401} {
			x := upstream.Exchange{Status: status, Body: []byte(body)}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			unauthorized(x)
			classifyExchange(x, parseChargeSuccess)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxAllocated {
				t.Errorf("%s with status %d: %d bytes are allocated", name, status, allocated)
			}
		}
	}
}
