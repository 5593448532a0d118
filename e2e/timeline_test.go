package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/localtest"
)

// orderTimeline is the part of payment show that this test reads.
type orderTimeline struct {
	Timeline []struct {
		Event        string `json:"event"`
		Outcome      string `json:"outcome"`
		OperatorCode string `json:"operator_code"`
		Count        int    `json:"count"`
		By           string `json:"by"`
	} `json:"timeline"`
}

// text has what happened at the operator, and after a bar what the merchant and the payer got. It leaves out repeated
// events, counts, and lookups that changed nothing.
func (s orderTimeline) text() string {
	var operators, others []string
	for _, e := range s.Timeline {
		line := strings.Join(strings.Fields(strings.Join([]string{e.Event, e.Outcome, e.OperatorCode}, " ")), " ")
		if e.By != "" {
			line += " by " + e.By
		}
		switch e.Event {
		case "call", "callback", "claim", "conflict", "final", "lookup":
			isCounted := e.Count > 0 || e.Outcome == "not-recorded"
			if !isCounted && (len(operators) == 0 || operators[len(operators)-1] != line) {
				operators = append(operators, line)
			}
		case "notification", "delivery", "payer-sms":
			others = append(others, line)
		}
	}
	slices.Sort(others)
	return strings.Join(operators, ", ") + " | " + strings.Join(slices.Compact(others), ", ")
}

// showTimeline shows an order.
func (e *ctlSession) showTimeline(line string) (order orderTimeline) {
	e.t.Helper()
	e.mustRun(line, &order)
	return order
}

// The parts of the timelines that several endings have.
const (
	confirmed = "callback successful, lookup successful, final successful by callback, confirmed by a lookup"
	notified  = " | delivery delivered, notification delivered"
	paid      = notified + ", payer-sms sent"
	refused   = "call succeeded, callback failed, lookup failed, final failed by callback, confirmed by a lookup"
)

// endingTimeout is the longest wait for an ending. The operator of 1004 responds after 60 seconds. The schedule of a
// dead letter takes 77 seconds here, with attemptsOfDead attempts.
const (
	endingTimeout  = 3 * time.Minute
	attemptsOfDead = 10
)

// endings are the timelines by the digits of the test numbers, and that of a dead letter.
var endings = map[string]string{
	"1001": refused + notified,
	"1002": refused + notified,
	"1003": "call succeeded, lookup pending, final expired by the end of its lifetime, after a lookup" + notified,
	"1004": "call unknown, lookup not-found, " + confirmed + notified,
	"1005": "call unknown, " + confirmed + paid,
	"1006": "call succeeded, " + confirmed + paid,
	"1007": "call succeeded, " + confirmed + ", callback failed, conflict failed by callback" + paid,
	"1008": "call succeeded, " + confirmed + paid,
	"1009": "call not-applied SVC0001 | ",
	"1010": "call unknown, " + confirmed + paid,
	"1011": "call succeeded, lookup successful, final successful by lookup" + paid,
	"dead": "call succeeded, " + confirmed + " | delivery failed, notification dead-letter, payer-sms sent",
}

// TestTimelineExplainsEachEnding: each ending of an order, as the digits of the test numbers select it, is understood
// from its timeline (decision "order-timeline").
func TestTimelineExplainsEachEnding(t *testing.T) {
	requireLocalRun(t)
	t.Parallel()
	t.Run("1004", func(t *testing.T) {
		t.Parallel()
		const dayOfMinutes = 240
		e := newCtlSession(t, localtest.Options{Speed: dayOfMinutes})
		order := e.payByDigits("1004")
		eventuallyNoError(t, endingTimeout, func() error {
			if found, err := e.target.inboxMessages(order); err != nil || len(found) == 0 {
				return fmt.Errorf("%d notifications: %w", len(found), err)
			}
			return nil
		})
		e.checkEnding("1004", order)
	})
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		e := newCtlSession(t, localtest.Options{Speed: acceleratedSpeed})
		server := newFaultyServer(t)
		server.modes["/dead"] = slices.Repeat([]responseMode{respond500}, 50)
		from := e.createMerchant("Dead", server.URL+"/dead").MerchantCredentials
		dead := newPayment(from, "Dead_"+e.target.newID(), "ussd", successfulMSISDN)
		orders := map[string]string{"dead": e.mustPay(dead)}
		for _, digits := range slices.Sorted(maps.Keys(endings)) {
			if digits != "1004" && digits != "dead" {
				orders[digits] = e.payByDigits(digits)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(orders)) {
			if name == "dead" {
				eventuallyNoError(t, endingTimeout, func() error {
					if made := len(server.attemptsAt("/dead")); made < attemptsOfDead {
						return fmt.Errorf("the server got %d attempts", made)
					}
					return nil
				})
			}
			e.checkEnding(name, orders[name])
		}
	})
}

// payByDigits sends a payment whose payer's number ends in the digits of an ending.
func (e *ctlSession) payByDigits(digits string) (order string) {
	e.t.Helper()
	order = e.target.Merchant + "_" + e.target.newID()
	return e.mustPay(newPayment(e.target.MerchantCredentials, order, "ussd", "+225070000"+digits))
}

// mustPay sends a payment and returns its order_id.
func (e *ctlSession) mustPay(payment *requestBuilder) (order string) {
	e.t.Helper()
	if _, err := e.target.sendForStatus(payment); err != nil {
		e.t.Fatal(err)
	}
	return payment.body["order_id"].(string)
}

// byLookup are the parts of a timeline if our lookup was faster than the callback, which changes nothing then.
var byLookup = strings.NewReplacer(
	confirmed, "lookup successful, final successful by lookup",
	strings.TrimPrefix(refused, "call succeeded, "), "lookup failed, final failed by lookup",
)

// checkEnding waits until the timeline of an order is that of its ending. The payer's SMS of 1004 takes longer.
func (e *ctlSession) checkEnding(name, order string) {
	e.t.Helper()
	e.eventually(func() error {
		got := e.showTimeline("payment show " + order).text()
		if name == "1004" {
			got, _, _ = strings.Cut(got, ", payer-sms")
		}
		if want := endings[name]; got != want && got != byLookup.Replace(want) {
			return fmt.Errorf("%s: the timeline is\n%s\nwant\n%s", name, got, want)
		}
		return nil
	})
}
