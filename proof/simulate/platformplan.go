package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/market"
)

// The last four digits of a number select its outcome at the stubs: ordinary ones, a refusal, no decision, an early
// callback, more callbacks, 503 and garbage. Multiples of 3 are on the web channel.
var (
	terminalNumbers = []int{1, 2, 4, 5, 1001, 1003, 7, 1006, 1007, 1009, 1010, 11008}
	smsNumbers      = []int{1, 2, 1003, 1006, 1007, 1008, 1009, 1010, 2001}
	webNumbers      = []int{3, 6, 9, 12, 1008, 1002, 1005 * 3, 21003, 21006, 11007}
)

// platformOrders are the payments that go to a platform by the routes.
var platformOrders = []struct {
	operator, countries string
	numbers             []int
}{
	{"mtn", "CI CM", terminalNumbers}, {"orange", "CI CD SN BF", terminalNumbers}, {"moov", "BF", terminalNumbers},
	{"orange", "CM", terminalNumbers}, {"orange", "CI BF CM SN", webNumbers}, {"wave", "SN CI BF", webNumbers},
	{"flouci", "TN", webNumbers},
}

// planPlatforms draws a history of payments by the platforms, mixed with orders by the gateway's own protocol.
func planPlatforms(w *World) {
	length := w.drawLength()
	w.drawRates()
	rate := tape.Draw(w.Tape, "rate of platform faults", 0, 60, 200, 400)
	if w.isSmooth = w.Tape.ChooseApart("a history without faults", 6) == 5; w.isSmooth {
		w.Rates, w.Faults.Rates, rate = history.Rates{}, nil, 0
	}
	w.addPlatforms(rate)
	if w.Tape.Choose("routes change", 3) == 2 {
		for _, rerouted := range []bool{true, false} {
			at := history.Start.Add(time.Duration(1+w.Tape.Choose("eighth of the time", 8)) * length / 8)
			w.Kernel.At(at, "routes", func() {
				w.secrets.Set(at, operatorSecret, w.platforms[platformHost].credentials(rerouted))
			})
		}
	}
	first := w.Tape.Choose("first number", len(terminalNumbers))
	for place := range 1 + w.Tape.Choose("orders", 3) {
		switch at := w.Tape.Choose("platform", len(platformOrders)+2); {
		case at < len(platformOrders):
			row, s := platformOrders[at], *tape.Draw(w.Tape, "shop", w.shops...)
			s.Operators, s.Countries = []string{row.operator}, strings.Fields(row.countries)
			w.startPlatformOrder(w.newOrder(&s, functionPay, row.numbers[(first+place)%len(row.numbers)]))
		case at == len(platformOrders):
			w.drawOrderOf(tape.Draw(w.Tape, "kind of order", functionCharge, functionPay), 50+place, length)
		default:
			w.startMessages(first + place)
		}
	}
}

// smsBurst is more SMS than the platform takes in a second.
const smsBurst = 7

// startMessages schedules an SMS, or a burst of them in one second. Each has its own recipient.
func (w *World) startMessages(at int) {
	s := tape.Draw(w.Tape, "shop", w.shops...)
	for n := range tape.Draw(w.Tape, "burst of SMS", 1, smsBurst) {
		o := w.newOrder(s, functionSMS, 100*n+smsNumbers[at%len(smsNumbers)]+10_000*(at+1))
		o.wanted.Payer = fmt.Sprintf("+22507%08d", o.number)
		o.wanted.Country, _ = market.ByAlpha2("CI")
		w.startPlatformOrder(o)
	}
}

// startPlatformOrder schedules the requests of a payment.
func (w *World) startPlatformOrder(o *order) {
	if payer, found := strings.CutPrefix(o.wanted.Payer, "+2377"); found {
		o.wanted.Payer = "+2376" + payer // a subscriber of Cameroon
	}
	o.event, o.otherBody = o.wanted.Event(o.shop.token), o.other(false).Event(o.shop.token)
	if o.wanted.Payer != "" {
		w.checker.addNumber(o.wanted.Payer)
	}
	o.start = history.Start.Add(time.Duration(w.Tape.Choose("second of the start", 60)) * time.Second)
	if w.isSmooth { // some orders come after the life of the tokens of others
		o.start = o.start.Add(time.Duration(w.Tape.Choose("half hour of the start", 8)) * 30 * time.Minute)
	}
	w.Kernel.At(o.start, "order", func() { w.request(o, ownBody) })
	for range w.Tape.Choose("duplicates", 3) {
		body := tape.Draw(w.Tape, "another body", ownBody, anotherBody)
		wait := tape.Draw(w.Tape, "time of the duplicate", retryWaits...)
		w.Kernel.At(o.start.Add(wait), "duplicate", func() { w.request(o, body) })
	}
}

// frequentQuirks are drawn in each history, the others rarely. The gateway refuses the webhooks of refusedQuirk.
var (
	frequentQuirks = []string{"/mtn callback_put", "/orangesms receipts_reordered", "/orangesms receipts_twice"}
	refusedQuirk   = "/wave shared_secret"
)

// drawQuirks draws what the platforms do other than most of their documents say.
func (p *platform) drawQuirks() {
	w := p.world
	hasMore := w.Tape.ChooseApart("further quirks", 3) == 2
	for _, row := range platformRows {
		path, quirks := row.prefix+"/stub/v1/quirks", map[string]bool{}
		if err := json.Unmarshal(p.control(http.MethodGet, path, nil), &quirks); err != nil {
			w.Fail("the quirks of %s: %s", row.name, err)
		}
		for _, name := range slices.Sorted(maps.Keys(quirks)) {
			label := row.prefix + " " + name
			switch {
			case slices.Contains(frequentQuirks, label):
				quirks[name] = w.Tape.Choose("quirk: "+label, 3) == 2
			case hasMore && label != refusedQuirk:
				quirks[name] = w.Tape.ChooseApart("quirk: "+label, 4) == 3
			}
		}
		drawn, _ := json.Marshal(quirks)
		p.control(http.MethodPut, path, drawn)
	}
}
