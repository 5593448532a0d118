package entries

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/timeline"
)

var update = flag.Bool("update", false, "write testdata/timeline.txt")

// noon is when the entries of these tests are created, by owner "o".
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// reserved returns a new reservation, as the functions store it, after some changes.
func reserved(kind ledger.Kind, changes ...func(*ledger.Entry)) *ledger.Entry {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: kind, ID: "id"}, Merchant: ledger.Merchant{ID: "m", Name: "Shop"},
		Amount:  ledger.Amount{Minor: 1005, Currency: "XOF"},
		Route:   ledger.Route{Country: "CI", Operator: "mtn", Account: "a"},
		Request: ledger.Request{MSISDN: "0707072000"},
		Outbox:  ledger.Outbox{URL: "https://shop.example/n"},
		Call:    ledger.Call{LeaseUntil: after(25)},
	}
	e.BeginReservation("o", noon)
	e.UpdatedAt = noon
	for _, change := range changes {
		change(e)
		e.Version++
	}
	e.Reschedule()
	return e
}

// recorded is the outcome of the call, a second after the reservation.
func recorded(state ledger.State, response int, result ledger.CallResult) func(*ledger.Entry) {
	return func(e *ledger.Entry) {
		e.ApplyOutcome("o", ledger.CallOutcome{State: state, ResponseStatus: response, Call: result}, after(1))
		e.UpdatedAt = after(1)
	}
}

// withReport adds a report of the operator.
func withReport(kind timeline.Kind, seconds int, outcome timeline.Outcome, code string) func(*ledger.Entry) {
	return func(e *ledger.Entry) {
		e.AddReport(timeline.Event{Kind: kind, At: after(seconds), Outcome: outcome, Code: code})
	}
}

// ended ends a payment.
func ended(status ledger.Status, seconds int) func(*ledger.Entry) {
	return func(e *ledger.Entry) {
		e.ApplyFinalStatus(ledger.StatusReport{Status: status, Source: ledger.SourceLookup}, after(seconds))
	}
}

var (
	succeeded = recorded(ledger.Done, 201, ledger.CallResult{Outcome: ledger.CallSucceeded, HTTPStatus: 201})
	unknown   = recorded(ledger.Unknown, 0, ledger.CallResult{Outcome: ledger.CallUnknown, Reason: "timeout"})
)

// resolved is a person's decision.
func resolved(outcome string) func(*ledger.Entry) {
	return func(e *ledger.Entry) {
		_ = e.ResolveManually(ledger.ManualOutcome{
			ManualResolution: ledger.ManualResolution{Outcome: outcome, Who: "ama", Reason: "statement"},
			Reference:        "OP-1", Owner: "o", ResponseStatus: 400,
		}, after(3600))
	}
}

// decision "order-timeline": the timeline of an entry, without what each has: its request, its reservation and its last
// write.
func TestTimeline(t *testing.T) {
	refusal := ledger.CallResult{
		Outcome: ledger.CallRefused, Reason: "POL1000", HTTPStatus: 500, Code: "NOT_ENOUGH_FUNDS",
	}
	histories := map[string]*ledger.Entry{
		"a charge that succeeds at once": reserved(ledger.Charge, succeeded),
		"a charge in flight":             reserved(ledger.Charge),
		"a charge that is refused":       reserved(ledger.Charge, recorded(ledger.Refused, 403, refusal)),
		"an unknown charge":              reserved(ledger.Charge, unknown),
		"a charge resolved by a person":  reserved(ledger.Charge, unknown, resolved(ledger.ManuallyApplied)),
		"a code of no table": reserved(ledger.Charge, recorded(ledger.Released, 0, ledger.CallResult{
			Outcome: ledger.CallNotApplied, Reason: "unmapped-code", HTTPStatus: 400, Response: 502,
			Code: timeline.UnknownCode,
		})),
		"a payment that is looked up": reserved(ledger.Payment, succeeded,
			withReport(timeline.Lookup, 60, timeline.Pending, ""),
			withReport(timeline.Lookup, 180, timeline.NoResponse, ""),
			withReport(timeline.Lookup, 480, timeline.Rejected, ""), withReport(timeline.Lookup, 1380, 0, ""),
			func(e *ledger.Entry) { e.ReschedulePoll(after(3180)) }),
		"a payment whose callback was confirmed": reserved(ledger.Payment, succeeded, ended(ledger.Successful, 20),
			withReport(timeline.Callback, 20, timeline.Successful, ""),
			withReport(timeline.Lookup, 20, timeline.Successful, "")),
		"a payment that failed by a lookup": reserved(ledger.Payment, succeeded, ended(ledger.Failed, 61),
			withReport(timeline.Lookup, 60, timeline.Failed, "PAYER_NOT_FOUND")),
		"a payment that was never sent": reserved(ledger.Payment,
			recorded(ledger.Unknown, 201, ledger.CallResult{Outcome: ledger.CallUnknown, Reason: "timeout"}),
			func(e *ledger.Entry) { e.EndNeverSent(after(900)) },
			withReport(timeline.Lookup, 899, timeline.NotFound, "")),
		"a payment resolved by a person's lookup": reserved(ledger.Payment, unknown, ended(ledger.Successful, 700),
			withReport(timeline.ManualLookup, 700, timeline.Successful, "")),
		"a payment resolved by a person": reserved(ledger.Payment, unknown, resolved("successful")),
		"a payment with a claim": reserved(ledger.Payment, succeeded, func(e *ledger.Entry) {
			e.AddClaim(ledger.Claim{Status: ledger.Successful, CheckAt: after(90)}, after(30))
		}, withReport(timeline.Callback, 30, timeline.Successful, ""),
			withReport(timeline.Lookup, 30, timeline.NotMade, "")),
		"a payment of an earlier version": reserved(ledger.Payment, succeeded, func(e *ledger.Entry) {
			e.ReschedulePoll(after(180))
			e.ReschedulePoll(after(480))
		}),
		"an SMS with its receipt": reserved(ledger.SMS, succeeded, func(e *ledger.Entry) {
			e.ApplyReceipt(ledger.DeliveredToTerminal, after(5))
		}, withReport(timeline.Receipt, 5, timeline.Terminal, "")),
	}
	got := ""
	for _, name := range slices.Sorted(maps.Keys(histories)) {
		got += name + "\n" + linesOf(histories[name]) + "\n"
	}
	const path = "testdata/timeline.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("timelines (-want +got):\n%s", diff)
	}
}

// linesOf returns a timeline with what made the outcome final and what is next, a line each.
func linesOf(e *ledger.Entry) string {
	h := HistoryOf(e, after(10))
	text, common := "", []string{eventRequest, eventReservation, eventWrite, eventNotification}
	for i, row := range EventRows(h.Timeline) {
		if !slices.Contains(common, h.Timeline[i].Event) {
			text += "  " + strings.TrimSpace(strings.Join(row, " ")) + "\n"
		}
	}
	for _, row := range output.Rows(h) {
		if row[0] == "final" || row[0] == "next" {
			text += "  " + row[0] + ": " + row[1] + "\n"
		}
	}
	return text
}
