package gatewayctl

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/world/operators/sandbox"
)

// startSandbox starts a sandbox operator.
func (d *testTool) startSandbox(controlTokens ...string) *httptest.Server {
	d.t.Helper()
	operator, err := sandbox.New(sandbox.Config{
		Tokens: []string{"t"}, ControlTokens: controlTokens, BaseURL: "http://127.0.0.1", Now: d.nowFunc(),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	server := httptest.NewServer(operator.Handler())
	d.t.Cleanup(func() {
		server.Close()
		_ = operator.Close()
	})
	return server
}

// decision "sandbox".
func TestSlots(t *testing.T) {
	d, _ := newShopTool(t)
	d.expectExit("slot list", ExitUsage, "SANDBOX_URL")
	d.variables["SANDBOX_URL"] = d.startSandbox().URL
	const line = "slot book ShopA --start 2026-03-02T09:00:00Z --duration 2h"
	starts := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	d.mustRun(line, nil)
	checkEqual(t, "slots after a dry run", query[[]slot](d, "slot list"), []slot{})
	slots := query[[]slot](d, line+confirmFlags)
	booked := slots[0].ID
	checkEqual(t, "booked slot", slots, []slot{{booked, "ShopA", starts, starts.Add(2 * time.Hour)}})
	for _, flags := range []string{"", confirmFlags} { // the limit is the sandbox's own
		d.mustRun("slot book ShopA --start 2026-03-04 --duration 8h"+flags, nil)
	}
	checkEqual(t, "start if not given", query[[]slot](d, "slot book ShopA"+confirmFlags)[0].StartsAt, d.now)
	d.expectBoth("slot book ShopA --start 2026-03-02T10:59:00Z", ExitFailed, "taken by slot "+booked)
	d.expectBoth("slot free nothing", ExitFailed, "no such slot")
	d.expectExit("slot book ShopX"+confirmFlags, ExitFailed, "no merchant")
	d.expectBoth("slot book ShopA --start 2026-03-01T10:00:00Z --duration 2h", ExitUsage, "over")
	d.expectBoth("slot book ShopA --start 2026-03-03 --duration 8h0m1s", ExitUsage, "8 hours")
	d.expectExit("slot book ShopA --start soon", ExitUsage, "soon")
	d.expectExit("slot book ShopA --duration 0s", ExitUsage, "--duration")
	d.mustRun("slot free "+booked, nil)
	checkEqual(t, "slots after a dry run of free", len(query[[]slot](d, "slot list")), 3)
	checkEqual(t, "freed", query[freedSlot](d, "slot free "+booked+confirmFlags), freedSlot{booked})
	checkEqual(t, "slots left", len(query[[]slot](d, "slot list")), 2)
	d.variables["SANDBOX_URL"] = "http://127.0.0.1:1"
	d.expectExit("slot list", ExitFailed, "does not respond")
	d.variables["SANDBOX_URL"] = d.startSandbox("CONTROL").URL
	d.expectExit("slot list", ExitFailed, "SANDBOX_CONTROL_TOKEN")
	d.variables["SANDBOX_CONTROL_TOKEN"] = "CONTROL"
	d.mustRun("slot list", nil)
}

// TestSlotTokenStaysAtSandbox: the control token goes over https or to this machine, and follows no redirect.
func TestSlotTokenStaysAtSandbox(t *testing.T) {
	d, _ := newShopTool(t)
	d.variables["SANDBOX_CONTROL_TOKEN"] = "CONTROL"
	for _, address := range []string{"http://sandbox.example", "http://10.0.0.1", "https://u:p@sandbox.example"} {
		d.variables["SANDBOX_URL"] = address
		d.expectExit("slot list", ExitUsage, "SANDBOX_URL is not an")
	}
	called := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	d.variables["SANDBOX_URL"] = server.URL
	d.expectExit("slot list", ExitFailed, "302")
	checkEqual(t, "calls", called, 1)
}

func TestLocal(t *testing.T) {
	d := newTestTool(t)
	folder := t.TempDir()
	d.variables["LOCAL_DIR"] = folder
	d.expectExit("merchant list --local", ExitUsage, "gatewayctl: usage: no local run uses "+folder)
	for _, line := range []string{"--help", "--local --help", "merchant list --local --help"} {
		if code, out, stderr := d.run(line); code != ExitDone || !strings.Contains(out, "Usage: gatewayctl") ||
			stderr != "" {
			t.Errorf("%s: exit %d, %s", line, code, stderr)
		}
	}
	given := map[string]string{}
	memory := d.connect
	d.connect = func(env System, p Deployment) (*Stores, error) {
		given = map[string]string{"table": p.MerchantTable, "key": env.Getenv("AWS_ACCESS_KEY_ID"), "url": p.SandboxURL}
		return memory(env, p)
	}
	writeFile(t, filepath.Join(folder, "aws.env"),
		"export AWS_ACCESS_KEY_ID='LOCAL'\\''KEY'\nexport MERCHANT_TABLE='local-merchants'\n")
	writeFile(t, filepath.Join(folder, "run.json"), `{"sandbox_url": "`+d.startSandbox().URL+`"}`)
	d.onboardShop() // without --local
	if given["table"] != "merchants" || given["url"] != "" {
		t.Errorf("without --local: %v", given)
	}
	d.mustRun("merchant change ShopA --notif-url http://127.0.0.1:9999/n --host 127.0.0.1:9999 --local"+confirmFlags,
		nil)
	if given["table"] != "local-merchants" || given["key"] != "LOCAL'KEY" {
		t.Errorf("with --local: %v", given)
	}
	d.mustRun("--local slot list", nil)
	d.mustRun("merchant list --local --merchant-table mine", nil)
	if given["table"] != "mine" {
		t.Errorf("--merchant-table does not override the local run: %v", given)
	}
	writeFile(t, filepath.Join(folder, "run.json"), "{")
	d.expectExit("slot list --local", ExitUsage, "")
}
