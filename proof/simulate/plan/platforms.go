package plan

import (
	"fmt"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
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

// DrawPlatforms draws a history of payments by the platforms, mixed with orders by the gateway's own protocol.
func DrawPlatforms(w *world.World) {
	length := drawLength(w)
	drawRates(w)
	rate := tape.Draw(w.Tape, "rate of platform faults", 0, 60, 200, 400)
	isSmooth := w.Tape.ChooseApart("a history without faults", 6) == 5
	if isSmooth {
		w.Rates, w.Faults.Rates, rate = history.Rates{}, nil, 0
	}
	w.Operators.AddPlatforms(rate, isSmooth)
	if w.Tape.Choose("routes change", 3) == 2 {
		for _, rerouted := range []bool{true, false} {
			at := history.Start.Add(time.Duration(1+w.Tape.Choose("eighth of the time", 8)) * length / 8)
			w.Kernel.At(at, "routes", func() { w.Operators.Platforms.SetRoutes(at, rerouted) })
		}
	}
	if isSmooth {
		drawLookups(w)
	}
	first := w.Tape.Choose("first number", len(terminalNumbers))
	for place := range 1 + w.Tape.Choose("orders", 3) {
		switch at := w.Tape.Choose("platform", len(platformOrders)+2); {
		case at < len(platformOrders):
			row, s := platformOrders[at], *tape.Draw(w.Tape, "shop", w.Merchants.Shops...)
			s.Operators, s.Countries = []string{row.operator}, strings.Fields(row.countries)
			startOrder(w, w.Merchants.Add(&s, deployment.Pay, row.numbers[(first+place)%len(row.numbers)]))
		case at == len(platformOrders):
			w.Merchants.DrawOf(tape.Draw(w.Tape, "kind of order", deployment.Charge, deployment.Pay), 50+place, length)
		default:
			startMessages(w, first+place)
		}
	}
}

// crowd is more payments than an account's lookups at MTN in a second. slowLookup is longer than MTN's patience with a
// callback. The callback of numberWithoutCallback is lost.
const (
	crowd                 = 24
	slowLookup            = 3 * time.Second
	numberWithoutCallback = 1011
)

// drawLookups may make the lookups slow, or schedule a crowd of payments in one second whose callbacks are lost.
func drawLookups(w *world.World) {
	switch w.Tape.ChooseApart("lookups at the platforms", 4) {
	case 2:
		w.Operators.Platforms.SlowLookups = slowLookup
	case 3:
		s := *w.Merchants.Shops[0]
		s.Operators, s.Countries = []string{"mtn"}, []string{"CI"}
		for n := range crowd {
			high := 10 + n + n/2 // leaves out each number of the web channel
			o := w.Merchants.Add(&s, deployment.Pay, 10_000*high+numberWithoutCallback)
			w.Merchants.Revise(o)
			o.Start = history.Start.Add(time.Minute)
			w.Merchants.Schedule(o, "order of the crowd")
		}
	}
}

// smsBurst is more SMS than the platform takes in a second.
const smsBurst = 7

// startMessages schedules an SMS, or a burst of them in one second. Each has its own recipient.
func startMessages(w *world.World, at int) {
	s := tape.Draw(w.Tape, "shop", w.Merchants.Shops...)
	for n := range tape.Draw(w.Tape, "burst of SMS", 1, smsBurst) {
		o := w.Merchants.Add(s, deployment.SMS, 100*n+smsNumbers[at%len(smsNumbers)]+10_000*(at+1))
		o.Wanted.Payer = fmt.Sprintf("+22507%08d", o.Number)
		o.Wanted.Country, _ = market.ByAlpha2("CI")
		w.Operators.Platforms.Messages.Expect(o.Wanted.Payer, o.Key(), o.Shop.Name)
		startOrder(w, o)
	}
}

// startOrder schedules the requests of a payment or an SMS.
func startOrder(w *world.World, o *merchants.Order) {
	if payer, found := strings.CutPrefix(o.Wanted.Payer, "+2377"); found {
		o.Wanted.Payer = "+2376" + payer // a subscriber of Cameroon
	}
	w.Merchants.Revise(o)
	o.Start = history.Start.Add(w.Merchants.DrawSecond())
	if w.Operators.IsSmooth() { // some orders come after the life of the tokens of others
		o.Start = o.Start.Add(time.Duration(w.Tape.Choose("half hour of the start", 8)) * 30 * time.Minute)
	}
	w.Merchants.Schedule(o, "order")
	w.Merchants.DrawDuplicates(o, merchants.OwnBody, merchants.AnotherBody)
}
