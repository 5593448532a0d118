package control

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/sandbox"
)

// withSandbox starts the sandbox operator beside the desk.
func (d *desk) withSandbox(controlTokens ...string) *httptest.Server {
	d.t.Helper()
	operator, err := sandbox.New(sandbox.Config{Tokens: []string{"t"}, ControlTokens: controlTokens, BaseURL: "http://127.0.0.1", Now: func() time.Time { return d.now }})
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
	d := newDesk(t)
	d.shop()
	d.refused("slot list", ExitUsage, "SANDBOX_URL")
	d.variables["SANDBOX_URL"] = d.withSandbox().URL
	var slots []slot
	d.do("slot book ShopA --at 2026-03-02T09:00:00Z --for 2h", nil)
	if d.do("slot list", &slots); len(slots) != 0 {
		t.Errorf("a dry run booked a slot: %+v", slots)
	}
	d.do("slot book ShopA --at 2026-03-02T09:00:00Z --for 2h"+yes, &slots)
	if len(slots) != 1 || slots[0].ID == "" || slots[0].Merchant != "ShopA" || slots[0].EndsAt.Hour() != 11 {
		t.Fatalf("booked: %+v", slots)
	}
	booked := slots[0].ID
	for _, hand := range []string{"", yes} { // the limit is the sandbox's own
		d.do("slot book ShopA --at 2026-03-04 --for 8h"+hand, nil)
	}
	d.do("slot book ShopA"+yes, &slots)
	if !slots[0].StartsAt.Equal(d.now) {
		t.Errorf("booked for now: %+v", slots)
	}
	for _, hand := range []string{"", yes} {
		d.refused("slot book ShopA --at 2026-03-02T10:59:00Z"+hand, ExitFailed, "taken by slot "+booked)
		d.refused("slot free nothing"+hand, ExitFailed, "no such slot")
	}
	d.refused("slot book Nobody"+yes, ExitFailed, "no merchant")
	for _, hand := range []string{"", yes} {
		d.refused("slot book ShopA --at 2026-03-01T10:00:00Z --for 2h"+hand, ExitUsage, "over")
		d.refused("slot book ShopA --at 2026-03-03 --for 8h0m1s"+hand, ExitUsage, "8 hours")
	}
	d.refused("slot book ShopA --at soon", ExitUsage, "soon")
	d.refused("slot book ShopA --for 0s", ExitUsage, "--for")
	d.do("slot free "+booked, nil)
	if d.do("slot list", &slots); len(slots) != 3 {
		t.Errorf("a dry run freed a slot: %+v", slots)
	}
	var gone freed
	if d.do("slot free "+booked+yes, &gone); gone.ID != booked {
		t.Errorf("freed: %+v", gone)
	}
	slots = nil
	if d.do("slot list", &slots); len(slots) != 2 {
		t.Errorf("freed: %+v", slots)
	}
	d.variables["SANDBOX_URL"] = "http://127.0.0.1:1"
	d.refused("slot list", ExitFailed, "does not answer")
	d.variables["SANDBOX_URL"] = d.withSandbox("CONTROL").URL
	d.refused("slot list", ExitFailed, "SANDBOX_CONTROL_TOKEN")
	d.variables["SANDBOX_CONTROL_TOKEN"] = "CONTROL"
	d.do("slot list", &slots)
}

func TestLocal(t *testing.T) {
	d := newDesk(t)
	folder := t.TempDir()
	d.variables["LOCAL_DIR"] = folder
	d.refused("merchant list --local", ExitUsage, "gatewayctl: usage: no local run uses "+folder)
	for _, line := range []string{"--help", "--local --help", "merchant list --local --help"} {
		if code, out, notes := d.run(line); code != ExitDone || !strings.Contains(out, "Usage: gatewayctl") || notes != "" {
			t.Errorf("%s: exit %d, %s", line, code, notes)
		}
	}
	given := map[string]string{}
	memory := d.connect
	d.connect = func(around System, p Places) (*Stores, error) {
		given = map[string]string{"table": p.MerchantTable, "key": around.Variable("AWS_ACCESS_KEY_ID"), "url": p.SandboxURL}
		return memory(around, p)
	}
	place := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run, err := json.Marshal(map[string]string{"sandbox_url": d.withSandbox().URL})
	if err != nil {
		t.Fatal(err)
	}
	place("aws.env", "export AWS_ACCESS_KEY_ID='LOCALKEY'\nexport MERCHANT_TABLE='local-merchants'\n")
	place("run.json", string(run))
	d.shop() // without --local
	if given["table"] != "merchants" || given["url"] != "" {
		t.Errorf("without --local: %v", given)
	}
	d.do("merchant change ShopA --notif-url http://127.0.0.1:9999/n --host 127.0.0.1:9999 --local"+yes, nil)
	if given["table"] != "local-merchants" || given["key"] != "LOCALKEY" {
		t.Errorf("with --local: %v", given)
	}
	d.do("--local slot list", nil)
	d.do("merchant list --local --merchant-table mine", nil)
	if given["table"] != "mine" {
		t.Errorf("a flag goes before the run's own: %v", given)
	}
	place("run.json", "{")
	d.refused("slot list --local", ExitUsage, "")
}
