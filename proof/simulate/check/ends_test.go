package check

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
)

// TestLookupsAreBoundedByEntry makes lookups at addresses that all payments share, and at addresses of their own. Only
// those of one payment are too many.
func TestLookupsAreBoundedByEntry(t *testing.T) {
	const wave, orange = "/wave/v1/checkout/sessions/search?client_reference=", "/orange-money-webpay/transactionstatus"
	for _, c := range []struct {
		address, body string // of the n-th lookup
		isTooMany     bool
	}{
		{wave + "OpenShop_1", "", true}, {wave + "OpenShop_%d", "", false},
		{orange, `{"order_id":"OpenShop_1"}`, true}, {orange, `{"order_id":"OpenShop_%d"}`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			record := &history.History{}
			ends := ends{
				base: &base{Deployment: &deployment.Deployment{Outside: &deployment.Outside{
					Tables: &deployment.Tables{Gate: &deployment.Gate{History: record}},
				}}},
				calls: map[string][]time.Time{},
			}
			for n := range callBounds[0].calls + 1 {
				number := fmt.Sprint(n)
				address := "https://example.com" + strings.ReplaceAll(c.address, "%d", number)
				request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
				ends.Requested(deployment.Sweep, request, []byte(strings.ReplaceAll(c.body, "%d", number)))
			}
			if (record.Violation != nil) != c.isTooMany {
				t.Errorf("%s %s: violation %v, want one: %v", c.address, c.body, record.Violation, c.isTooMany)
			}
		})
	}
}
