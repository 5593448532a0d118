package gatewayctl

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

// statusServer is an operator's server that has no orders and records the last request.
type statusServer struct {
	*httptest.Server
	lastRequest string
}

func newStatusServer(t *testing.T) *statusServer {
	l := &statusServer{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.lastRequest = r.Method + " " + r.RequestURI + " " + string(body)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(l.Close)
	return l
}

// The tool looks up statuses in the protocol of each operator's own driver, as the functions do. The guide to a new
// operator runs this test with a driver of its own.
func TestOperatorCheckUsesEachProtocol(t *testing.T) {
	for _, name := range operator.Names() {
		t.Run(name, func(t *testing.T) {
			platform, d := newStatusServer(t), newTestTool(t)
			shop := d.onboardShop()
			credentials, err := json.Marshal(map[string]any{name: map[string]any{
				"current": "a1", "accounts": map[string]any{"a1": map[string]string{"base_url": platform.URL,
					"access_token": "t"}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			own, offered := drivers.NewDirectory(secret.Static(credentials), nil, d.nowFunc()).StatusLookup(name)
			if !offered {
				t.Skip("it offers no status lookup")
			}
			row, _ := operator.FindCapabilities(name)
			want := func(order, country string) string {
				own.LookUpPayment(t.Context(), operator.StatusCall{
					Call:    operator.Call{Operator: name, AccountID: "a1", UpstreamKey: order, Country: country},
					Channel: row.Channels[0], Lang: "en",
				})
				return platform.lastRequest
			}
			d.input = string(credentials)
			d.apply("operator set -")
			expected := want(checkOrderID, row.Countries[0])
			platform.lastRequest = ""
			d.run("operator check " + name)
			if platform.lastRequest != expected {
				t.Errorf("operator check sent %q, want %q", platform.lastRequest, expected)
			}
			lost := d.addUnknownPayment(shop)
			e := d.mustReadEntry(lost)
			e.Operator, e.Channel, e.Country = name, row.Channels[0], row.Countries[0]
			d.ledger.Overwrite(e)
			expected = want(e.UpstreamKey, e.Country)
			platform.lastRequest = ""
			d.run("unknown resolve pay " + e.ID)
			if platform.lastRequest == "" || platform.lastRequest != expected {
				t.Errorf("unknown resolve sent %q, want %q", platform.lastRequest, expected)
			}
		})
	}
}

func TestOperators(t *testing.T) {
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"requestError":{"serviceException":{"messageId":"SVC0002",` +
			`"text":"Invalid input value for message part %1","variables":["order_id"]}}}`))
	}))
	defer platform.Close()
	d := newTestTool(t)
	account := func(token string) string {
		return `{"base_url":"` + platform.URL + `","access_token":"` + token + `","later":1}`
	}
	d.input = `{"Orange":{"current":"a1","accounts":{"a1":` + account("good") + `}}}`
	d.apply("operator set -")
	d.mustRun("operator check", nil)
	d.input = `{"orange":{"current":"a2","accounts":{"a2":` + account("bad") +
		`}},"mtn":{"current":"m","accounts":{"m":` + account("good") + `}}}`
	d.apply("operator set -")
	if !strings.Contains(string(d.vault.values["operators"]), `"later":1`) {
		t.Error("a field that the tool does not know was lost")
	}
	checkEqual(t, "merged accounts", query[[]accountView](d, "operator list"), []accountView{
		{"mtn", "m", true, platform.URL}, {"orange", "a1", false, platform.URL}, {"orange", "a2", true, platform.URL},
	})
	code, out, stderr := d.run("operator check")
	if code != ExitFailed || strings.Count(out, "true   ")+strings.Count(out, " true") < 2 ||
		strings.Contains(out+stderr, "good") || strings.Contains(out+stderr, "bad") {
		t.Errorf("check: exit %d, %s%s", code, out, stderr)
	}
	d.mustRun("operator check mtn", nil)
	d.expectExit("operator check sandbox", ExitFailed, "no credentials")
	for text, word := range map[string]string{
		`{"other":{"current":"a","accounts":{"a":` + account("good") + `}}}`: `"other"`,
		`{"orange":{"current":"a9"}}`:                                        "account",
		`{SECRET`:                                                            "JSON",
		``:                                                                   "empty",
	} {
		d.input = text
		d.expectExit("operator set -"+confirmFlags, ExitUsage, word)
	}
	d.expectExit("operator set /nowhere/file", ExitUsage, "/nowhere/file")
}
