package console_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"mobilegateway/gatewayctl/console"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// The path through the states is drawn and in words.
func TestPath(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	s := newSite(t, d)
	for number, c := range map[int]struct {
		state       ledger.State
		status      ledger.Status
		everUnknown bool
		want        string
	}{
		1: {ledger.Done, ledger.Successful, false, "reserved done pending successful"},
		2: {ledger.Done, ledger.Successful, true, "reserved unknown done pending successful"},
		3: {ledger.Refused, ledger.Failed, false, "reserved refused pending failed"},
		4: {ledger.Unknown, ledger.Pending, true, "reserved unknown pending"},
		5: {ledger.Released, ledger.Pending, false, "reserved released pending"},
	} {
		e := d.AddDeliveredPayment(shop, number, d.Now, func(e *ledger.Entry) {
			e.State, e.Status, e.EverUnknown = c.state, c.status, c.everUnknown
		})
		page := s.mustGet("/transaction?kind=pay&id=" + e.ID)
		var got []string
		_, path, _ := strings.Cut(page, "The path that it took:")
		path, _, _ = strings.Cut(path, "</ol>")
		for part := range strings.SplitSeq(path, "<li><code>") {
			if name, _, found := strings.Cut(part, "</code>"); found {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%d: the path is %v, want %v", number, got, c.want)
		}
		if nodes := strings.Count(page, `class="node on`); nodes != len(got) {
			t.Errorf("%d: the picture has %d states, want %d", number, nodes, len(got))
		}
	}
}

// timeline is the output of payment show with a timeline, as the tool writes it.
const timeline = `{"kind": "pay", "id": "ShopA_1", "merchant": "ShopA", "created_at": "2026-03-01T11:00:00Z",
"state": "done", "status": "successful", "amount": "1005", "currency": "XOF", "ever_unknown": false, "conflicts": 0,
"final": {"outcome": "successful", "by": "callback, confirmed by a lookup", "at": "2026-03-01T11:00:05Z"},
"next": {"what": "delivery attempt", "at": "2026-03-01T13:00:00Z"},
"timeline": [
{"at": "2026-03-01T11:00:00Z", "event": "request", "by": "merchant ShopA", "detail": "1005 XOF"},
{"at": "2026-03-01T11:00:01Z", "event": "call", "outcome": "unknown", "operator_code": "SVC0270"},
{"at": "2026-03-01T11:00:03Z", "event": "lookup", "count": 4},
{"at": "2026-03-01T11:00:04Z", "event": "callback", "outcome": "successful"},
{"at": "2026-03-01T13:00:00Z", "event": "expiry"}]}`

// A timeline of the tool is a picture with an arrow for each step, and a list in words.
func TestTimeline(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	s := newSite(t, d, func(c *console.Config) {
		c.Run = func(_ context.Context, arguments []string, stdout, _ io.Writer) int {
			if arguments[0] == "payment" {
				_, _ = io.WriteString(stdout, timeline)
				return 0
			}
			_, _ = io.WriteString(stdout, "{}")
			return 0
		}
	})
	page := s.expect("/transaction?kind=pay&id=ShopA_1", "Final by callback, confirmed by a lookup",
		"Next: delivery attempt", "SVC0270", "(4 more before)", "1,005 XOF", "(not yet)", `class="later"`)
	if arrows, dots := strings.Count(page, "<polygon"), strings.Count(page, "<circle"); arrows != 4 || dots != 1 {
		t.Errorf("the picture has %d arrows and %d dots, want 4 and 1", arrows, dots)
	}
	s.expect("/transaction?kind=pay&id=ShopA_1&lang=fr", "Final par rappel, confirmé par une interrogation", "appel",
		"requête")
}
