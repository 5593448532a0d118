package confirm

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// decision "inert-payments": no platform declares a page's life yet, so the rule has a row of its own here.
func TestInert(t *testing.T) {
	reservedAt := time.Unix(1700000000, 0)
	const pageLife = 10 * time.Minute
	end := reservedAt.Add(21 * time.Minute) // a minute to send, the page's life, and a margin of ten minutes
	declared := operator.Capabilities{InertAfter: pageLife}
	for _, c := range []struct {
		name   string
		row    operator.Capabilities
		change func(*ledger.Entry)
		now    time.Time
		want   bool
	}{
		{"the page has ended", declared, func(*ledger.Entry) {}, end, true},
		{"the page may be open", declared, func(*ledger.Entry) {}, end.Add(-time.Second), false},
		{"the platform declares nothing", operator.Capabilities{}, func(*ledger.Entry) {}, end, false},
		{"the page was stored", declared, func(e *ledger.Entry) { e.DriverData = "page" }, end, false},
		{"the merchant has got the page", declared, func(e *ledger.Entry) { e.Response.Status = 201 }, end, false},
		{"a terminal", declared, func(e *ledger.Entry) { e.Request.Channel = "tpe" }, end, false},
		{"an accepted payment", declared, func(e *ledger.Entry) { e.State = ledger.Done }, end, false},
	} {
		e := &ledger.Entry{
			Call: ledger.Call{ReservedAt: reservedAt, State: ledger.Unknown}, Request: ledger.Request{Channel: "web"},
		}
		c.change(e)
		if got := isInert(c.row, e, c.now); got != c.want {
			t.Errorf("%s: inert %v, want %v", c.name, got, c.want)
		}
	}
}
