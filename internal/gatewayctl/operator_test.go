package gatewayctl

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
)

// statusServer is an operator's platform that knows nothing and keeps what it was asked.
type statusServer struct {
	*httptest.Server
	heard string
}

func newStatusServer(t *testing.T) *statusServer {
	l := &statusServer{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.heard = r.Method + " " + r.RequestURI + " " + string(body)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(l.Close)
	return l
}

// Each operator is asked in the protocol of its own row's driver, here and in the functions. The guide to a new
// operator runs this with one whose driver is its own.
func TestOperatorCheckUsesEachProtocol(t *testing.T) {
	for _, name := range operator.Names() {
		t.Run(name, func(t *testing.T) {
			platform, d := newStatusServer(t), newTestTool(t)
			shop := d.onboardShop()
			credentials, err := json.Marshal(map[string]any{name: map[string]any{
				"current": "a1", "accounts": map[string]any{"a1": map[string]string{"base_url": platform.URL, "access_token": "t"}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			own, offered := drivers.NewDirectory(staticSecret(credentials), d.nowFunc()).StatusLookup(name)
			if !offered {
				t.Skip("it offers no status lookup")
			}
			row, _ := operator.FindCapabilities(name)
			want := func(order, country string) string {
				own.LookUpPayment(t.Context(), operator.StatusCall{
					Call: operator.Call{Operator: name, AccountID: "a1", IdempotencyKey: order, Country: country}, Channel: row.Channels[0], Lang: "en",
				})
				return platform.heard
			}
			d.input = string(credentials)
			d.mustRun("operator set -"+confirmFlags, nil)
			asked := want(checkOrderID, row.Countries[0])
			platform.heard = ""
			d.run("operator check " + name)
			if platform.heard != asked {
				t.Errorf("operator check sent %q, want %q", platform.heard, asked)
			}
			lost := d.addUnknownPayment(shop, 1)
			e := d.mustReadEntry(lost)
			e.Operator, e.Channel, e.Country = name, row.Channels[0], row.Countries[0]
			d.ledger.Overwrite(e)
			asked = want(e.UpstreamKey, e.Country)
			platform.heard = ""
			d.run("unknown resolve pay " + e.ID)
			if platform.heard == "" || platform.heard != asked {
				t.Errorf("unknown resolve sent %q, want %q", platform.heard, asked)
			}
		})
	}
}
