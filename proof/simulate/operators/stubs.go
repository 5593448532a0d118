package operators

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/world/operators/platforms"
)

// stubs are the stubs of the platforms, which run inside the kernel: they work in calls and timers only. All share one
// host.
type stubs struct {
	config  platforms.Config
	handler http.Handler
}

// control makes a request to a control path of a stub.
func (s stubs) control(method, path string, body []byte) []byte {
	request := httptest.NewRequestWithContext(context.Background(), method, path, bytes.NewReader(body))
	return s.do(request).Body.Bytes()
}

func (s stubs) do(request *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, request)
	return recorder
}

// frequentQuirks are drawn in each history, the others rarely. The gateway refuses the webhooks of refusedQuirk.
var (
	frequentQuirks = []string{"/mtn callback_put", "/orangesms receipts_reordered", "/orangesms receipts_twice"}
	refusedQuirk   = "/wave shared_secret"
)

// drawQuirks draws what the platforms do other than most of their documents say.
func (s stubs) drawQuirks(h *history.History) {
	hasMore := h.Tape.ChooseApart("further quirks", 3) == 2
	for _, row := range rows {
		path, quirks := row.prefix+"/stub/v1/quirks", map[string]bool{}
		if err := json.Unmarshal(s.control(http.MethodGet, path, nil), &quirks); err != nil {
			h.Fail("the quirks of %s: %s", row.Name, err)
		}
		for _, name := range slices.Sorted(maps.Keys(quirks)) {
			label := row.prefix + " " + name
			switch {
			case slices.Contains(frequentQuirks, label):
				quirks[name] = h.Tape.Choose("quirk: "+label, 3) == 2
			case hasMore && label != refusedQuirk:
				quirks[name] = h.Tape.ChooseApart("quirk: "+label, 4) == 3
			}
		}
		drawn, _ := json.Marshal(quirks)
		s.control(http.MethodPut, path, drawn)
	}
}
