package gatewayctl_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/proof/kits/gatewayctltest"
)

// watched runs a line until it has waited this often, as a person interrupts it. It returns the waits.
func watched(
	d *gatewayctltest.Tool, columns, times int, line string, between func(),
) (code int, out, stderr string, waits []time.Duration) {
	var o, e bytes.Buffer
	code = d.Run(context.Background(), strings.Fields(line), deployment.System{
		Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e,
		Getenv: func(name string) string { return d.Variables[name] }, User: "ama@host", Now: d.Clock(),
		Connect: d.Connect, Columns: func() int { return columns },
		Sleep: func(_ context.Context, wait time.Duration) error {
			if waits = append(waits, wait); len(waits) == times {
				return errors.New("interrupted")
			}
			between()
			return nil
		},
	})
	return code, o.String(), e.String(), waits
}

// A watched list is read again each time, also on the next day, until it is interrupted.
func TestWatch(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	number := 0
	add := func() {
		number++
		d.Now = d.Now.Add(session.Day)
		d.AddDeliveredPayment(shop, number, d.Now)
	}
	add()
	for line, want := range map[string]time.Duration{
		"list ShopA --watch":                    2 * time.Second,
		"list --watch ShopA":                    2 * time.Second,
		"list --watch 5s ShopA":                 5 * time.Second,
		"find --merchant ShopA --watch=1m":      time.Minute,
		"find --watch 3s --operator sandbox":    3 * time.Second,
		"deliveries list ShopA --watch 1500ms":  1500 * time.Millisecond,
		"operator status --watch":               2 * time.Second,
		"attention --no-lookup --watch":         2 * time.Second,
		"attention list --no-lookup --watch 9s": 9 * time.Second,
	} {
		first := number
		code, out, stderr, waits := watched(d, 0, 3, line, add)
		if code != gatewayctl.ExitDone || !slices.Equal(waits, []time.Duration{want, want, want}) || stderr != "" {
			t.Errorf("%s: exit %d, waited %v: %s", line, code, waits, stderr)
		}
		runs := strings.Count(out, ", every "+want.String())
		last := "ShopA_" + strconv.Itoa(number)
		if runs != 3 || strings.Contains(line, "list ShopA") && !strings.Contains(out, last) || number != first+2 {
			t.Errorf("%s: %d runs, and %s is missing: %s", line, runs, last, out)
		}
	}
}

// A terminal shows only the last run. A pipe gets no sequence.
func TestWatchClearsTerminal(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now)
	for columns, want := range map[int]int{0: 0, 80: 2} {
		_, out, _, _ := watched(d, columns, 2, "list ShopA --watch", func() {})
		if got := strings.Count(out, "\x1b[H\x1b[2J"); got != want {
			t.Errorf("%d columns: cleared %d times, want %d", columns, got, want)
		}
		if columns == 0 && strings.Contains(out, "\x1b") {
			t.Errorf("a pipe gets a sequence: %q", out)
		}
	}
	d.Variables["NO_COLOR"] = "1"
	_, out, _, _ := watched(d, 80, 1, "list ShopA --watch", func() {})
	if rest := strings.ReplaceAll(out, "\x1b[H\x1b[2J", ""); strings.Contains(rest, "\x1b") {
		t.Errorf("colours in spite of NO_COLOR: %q", rest)
	}
}

// A failure of a later run is shown and tried again. A first run that fails is the end, and so is a wrong line.
func TestWatchFailures(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	fails := true
	code, out, _, waits := watched(d, 0, 3, "list ShopA --watch", func() {
		if d.Merchants.Err = nil; fails {
			d.Merchants.Err = errors.New("no response from the table")
		}
		fails = false
	})
	if code != gatewayctl.ExitDone || len(waits) != 3 || strings.Count(out, "no response") != 1 ||
		strings.Count(out, "There is none.") != 2 {
		t.Errorf("exit %d, %d waits: %s", code, len(waits), out)
	}
	d.Merchants.Err = errors.New("no response from the table")
	code, _, stderr, waits := watched(d, 0, 1, "list ShopA --watch", func() {})
	if code != gatewayctl.ExitFailed || len(waits) > 0 || !strings.Contains(stderr, "no response") {
		t.Errorf("a first run that fails: exit %d, %d waits: %s", code, len(waits), stderr)
	}
	d.Merchants.Err = nil
	for line, want := range map[string]string{
		"list ShopA --watch --json":    "--watch excludes --json",
		"list ShopA --watch=soon":      `"soon" is not a time`,
		"list ShopA --watch 10ms":      "at least 1s",
		"list ShopA --watch --paint":   "unknown flag",
		"merchant show ShopA --watch":  "unknown flag --watch",
		"list --watch":                 "<merchant>",
		"find --payer 34 --watch":      "payer needs another filter",
		"unknown list ShopA --watch":   "unknown flag --watch",
		"export ShopA --watch --since": "unknown flag --watch",
	} {
		code, _, stderr, waits := watched(d, 0, 1, line, func() {})
		if code != gatewayctl.ExitUsage || len(waits) > 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %d waits: %q, want %q", line, code, len(waits), stderr, want)
		}
	}
}

// Without a command the tool shows what to do first, and all commands.
func TestGuide(t *testing.T) {
	d := gatewayctltest.New(t)
	code, out, stderr := d.ExecArguments()
	for _, want := range []string{
		"What to do first\n  gatewayctl attention ", "\n\nTransactions\n  find ", "\n  counts ", "\n  merchant ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing: %s", want, out)
		}
	}
	if code != gatewayctl.ExitDone || stderr != "" {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
