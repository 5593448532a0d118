package slots_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/slots"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/sandbox"
)

// startSandbox starts a sandbox operator.
func startSandbox(d *gatewayctltest.Tool, controlTokens ...string) *httptest.Server {
	d.T.Helper()
	operator, err := sandbox.New(sandbox.Config{
		Tokens: []string{"t"}, ControlTokens: controlTokens, BaseURL: "http://127.0.0.1",
		Config: kit.Config{Now: d.Clock()},
	})
	if err != nil {
		d.T.Fatal(err)
	}
	server := httptest.NewServer(operator.Handler())
	d.T.Cleanup(func() {
		server.Close()
		_ = operator.Close()
	})
	return server
}

// decision "sandbox".
func TestSlots(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.ExpectExit("slot list", gatewayctl.ExitUsage, "SANDBOX_URL")
	d.Variables["SANDBOX_URL"] = startSandbox(d).URL
	const line = "slot book ShopA --start 2026-03-02T09:00:00Z --duration 2h"
	starts := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	d.MustRun(line, nil)
	d.ExpectJSON("slots after a dry run", "slot list", []slots.Slot{})
	booking := gatewayctltest.Change[[]slots.Slot](d, line)
	booked := booking[0].ID
	d.Equal("booked slot", booking,
		[]slots.Slot{{ID: booked, Merchant: "ShopA", StartsAt: starts, EndsAt: starts.Add(2 * time.Hour)}})
	for _, flags := range []string{"", gatewayctltest.Confirm} { // the limit is the sandbox's own
		d.MustRun("slot book ShopA --start 2026-03-04 --duration 8h"+flags, nil)
	}
	d.Equal("start if not given", gatewayctltest.Change[[]slots.Slot](d, "slot book ShopA")[0].StartsAt, d.Now)
	d.ExpectBoth("slot book ShopA --start 2026-03-02T10:59:00Z", gatewayctl.ExitFailed, "taken by slot "+booked)
	d.ExpectBoth("slot free nothing", gatewayctl.ExitFailed, "no such slot")
	d.ExpectFailed("slot book ShopX", "no merchant")
	d.ExpectBoth("slot book ShopA --start 2026-03-01T10:00:00Z --duration 2h", gatewayctl.ExitUsage, "over")
	d.ExpectBoth("slot book ShopA --start 2026-03-03 --duration 8h0m1s", gatewayctl.ExitUsage, "8 hours")
	d.ExpectExit("slot book ShopA --start soon", gatewayctl.ExitUsage, "soon")
	d.ExpectExit("slot book ShopA --duration 0s", gatewayctl.ExitUsage, "--duration")
	d.MustRun("slot free "+booked, nil)
	d.ExpectCount("slots after a dry run of free", "slot list", 3)
	d.ExpectJSON("freed", "slot free "+booked+gatewayctltest.Confirm, slots.FreedSlot{ID: booked})
	d.ExpectCount("slots left", "slot list", 2)
	d.Variables["SANDBOX_URL"] = "http://127.0.0.1:1"
	d.ExpectExit("slot list", gatewayctl.ExitFailed, "does not respond")
	d.Variables["SANDBOX_URL"] = startSandbox(d, "CONTROL").URL
	d.ExpectExit("slot list", gatewayctl.ExitFailed, "SANDBOX_CONTROL_TOKEN")
	d.Variables["SANDBOX_CONTROL_TOKEN"] = "CONTROL"
	d.MustRun("slot list", nil)
}

// TestSlotTokenStaysAtSandbox: the control token goes over https or to this machine, and follows no redirect.
func TestSlotTokenStaysAtSandbox(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.Variables["SANDBOX_CONTROL_TOKEN"] = "CONTROL"
	for _, address := range []string{"http://sandbox.example", "http://10.0.0.1", "https://u:p@sandbox.example"} {
		d.Variables["SANDBOX_URL"] = address
		d.ExpectExit("slot list", gatewayctl.ExitUsage, "SANDBOX_URL is not an")
	}
	called := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	d.Variables["SANDBOX_URL"] = server.URL
	d.ExpectExit("slot list", gatewayctl.ExitFailed, "302")
	d.Equal("calls", called, 1)
}

func TestLocal(t *testing.T) {
	d := gatewayctltest.New(t)
	folder := t.TempDir()
	d.Variables["LOCAL_DIR"] = folder
	d.ExpectExit("merchant list --local", gatewayctl.ExitUsage, "gatewayctl: usage: no local run uses "+folder)
	for _, line := range []string{"--help", "--local --help", "merchant list --local --help"} {
		code, out, stderr := d.Exec(line)
		if code != gatewayctl.ExitDone || !strings.Contains(out, "Usage: gatewayctl") || stderr != "" {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
	}
	given := map[string]string{}
	memory := d.Connect
	d.Connect = func(env deployment.System, p deployment.Names) (*deployment.Stores, error) {
		given = map[string]string{"table": p.MerchantTable, "key": env.Getenv("AWS_ACCESS_KEY_ID"), "url": p.SandboxURL}
		return memory(env, p)
	}
	gatewayctltest.WriteFile(t, filepath.Join(folder, "aws.env"),
		"export AWS_ACCESS_KEY_ID='LOCAL'\\''KEY'\nexport MERCHANT_TABLE='local-merchants'\n")
	gatewayctltest.WriteFile(t, filepath.Join(folder, "run.json"), `{"sandbox_url": "`+startSandbox(d).URL+`"}`)
	d.Onboard("ShopA") // without --local
	if given["table"] != "merchants" || given["url"] != "" {
		t.Errorf("without --local: %v", given)
	}
	d.Apply("merchant change ShopA --notif-url http://127.0.0.1:9999/n --host 127.0.0.1:9999 --local")
	if given["table"] != "local-merchants" || given["key"] != "LOCAL'KEY" {
		t.Errorf("with --local: %v", given)
	}
	d.MustRun("--local slot list", nil)
	d.MustRun("merchant list --local --merchant-table mine", nil)
	if given["table"] != "mine" {
		t.Errorf("--merchant-table does not override the local run: %v", given)
	}
	gatewayctltest.WriteFile(t, filepath.Join(folder, "run.json"), "{")
	d.ExpectExit("slot list --local", gatewayctl.ExitUsage, "")
}
