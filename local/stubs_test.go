package local_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/localtest"
)

// TestStubsAreRemoved starts with stubs, adds an account and a route beside theirs, and starts without stubs.
func TestStubsAreRemoved(t *testing.T) {
	options := localtest.Options{Dir: t.TempDir(), Stubs: true}
	first := localtest.Start(t, options)
	address := first.Info().StubsURL
	for host, want := range map[string]int{"": http.StatusOK, "page.example": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/mtn/stub/v1/effects", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil || response.StatusCode != want {
			t.Fatalf("the control port responds %v, %v for the host %q, want %d", response, err, host, want)
		}
		_ = response.Body.Close()
	}
	value, routes, write := readOperatorSecret(t, first)
	theirs := map[string]any{"base_url": "https://pawapay.example"}
	value["pawapay"].Accounts["theirs"] = theirs
	byOperator, _ := routes.(map[string]any)
	free := []any{map[string]any{"country": "SN", "operation": "pay", "to": "pawapay/theirs"}}
	byOperator["free"] = append(free, byOperator["free"].([]any)...)
	document := map[string]any{"routes": byOperator}
	for platform, accounts := range value {
		if platform != "routes" {
			document[platform] = accounts
		}
	}
	write(document)
	first.Close()

	options.Stubs = false
	second := localtest.Start(t, options)
	info, err := os.ReadFile(filepath.Join(second.Dir, "run.json"))
	if err != nil || strings.Contains(string(info), "stubs") {
		t.Errorf("run.json names stubs: %v", err)
	}
	value, routes, _ = readOperatorSecret(t, second)
	if difference := cmp.Diff(any(map[string]any{"free": free}), routes); difference != "" {
		t.Errorf("the routes differ (-want +got):\n%s", difference)
	}
	delete(value, "routes")
	ids := map[string][]string{}
	for platform, accounts := range value {
		for id := range accounts.Accounts {
			ids[platform] = append(ids[platform], id)
		}
	}
	want := map[string][]string{"sandbox": {"local"}, "orange": {"local"}, "mtn": {"local"}, "pawapay": {"theirs"}}
	if difference := cmp.Diff(want, ids); difference != "" {
		t.Errorf("the accounts differ (-want +got):\n%s", difference)
	}
	if value["pawapay"].Current != "theirs" {
		t.Errorf("the current account of pawapay is %q", value["pawapay"].Current)
	}
}
