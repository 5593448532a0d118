package restore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/confirm"
	"mobilegateway/shared/ledger"
)

// An unknown payment whose retry the restore lost waits from its last sighting: "not found" proves nothing before. A
// list shows no retries, so that the last one may be as late as the command. Another entry stays as it is.
func TestLostRetryOfAPresentPayment(t *testing.T) {
	early := logLine("pay", "ShopA", "ShopA_1", lostAt.Add(-time.Minute))
	late := logLine("pay", "ShopA", "ShopA_1", lostAt)
	for name, c := range map[string]struct {
		log, list []string
		last      func(now time.Time) time.Time
	}{
		"log lines": {log: []string{early, late, early}, last: func(time.Time) time.Time { return lostAt }},
		"a row of its first request": {list: []string{"pay,ShopA_1,2026-02-28T11:30:00Z"},
			last: func(now time.Time) time.Time { return now }},
		"a row after the moment": {log: []string{late}, list: []string{"pay,ShopA_1,2026-03-01T11:30:00Z"},
			last: func(now time.Time) time.Time { return now }},
	} {
		t.Run(name, func(t *testing.T) {
			d, shop := newLoss(t)
			reserved := lostAt.Add(-time.Hour)
			makeUnknown := func(e *ledger.Entry) { e.State, e.Response = ledger.Unknown, ledger.Response{} }
			unknown := d.AddPendingPayment(shop, 1, reserved, makeUnknown).Key
			accepted := d.AddPendingPayment(shop, 2, reserved)
			rows := []string{"kind,id,created_at"}
			for _, row := range c.list {
				rows = append(rows, row, strings.Replace(row, "ShopA_1", "ShopA_2", 1))
			}
			line := check(file(t, "lines.log", append(c.log, logLine("pay", "ShopA", "ShopA_2", lostAt))...))
			change(d, line+" --list ShopA="+file(t, "list.csv", rows...))
			e := d.MustReadEntry(unknown)
			d.Equal("entry", fmt.Sprint(e.State, " ", e.Request.Restored(), e.ReservedAt.Equal(c.last(d.Now))),
				"unknown false true")
			d.Equal("the accepted one", d.MustReadEntry(accepted.Key), accepted)
		})
	}
}

// An operator that does not know a payment 15 minutes after its send proves that it was never sent. The lost retry
// counts: released too early, the payment would be sent again while its operator still accepts the first.
func TestNotFoundProvesNothingBeforeTheLostRetry(t *testing.T) {
	d, shop := newLoss(t)
	key := d.AddPendingPayment(shop, 1, lostAt.Add(-time.Hour), func(e *ledger.Entry) {
		e.State, e.EverUnknown, e.Response = ledger.Unknown, true, ledger.Response{}
		e.Route.Operator, e.Route.Country, e.Route.Account = "mtn", "CM", "mtn-momo/a1"
	}).Key
	change(d, check(file(t, "lines.log", logLine("pay", "ShopA", "ShopA_1", lostAt))))
	notFound := confirm.LookupResult{Supported: true, Responded: true, NotFound: true}
	for after, want := range map[time.Duration]string{10 * time.Minute: "unknown", 17 * time.Minute: "released"} {
		e := d.MustReadEntry(key)
		(&confirm.Confirmer{}).ApplyLookup(e, notFound, 24*time.Hour, lostAt.Add(after))
		d.Equal("the state "+after.String()+" after the retry", string(e.State), want)
	}
}

// A platform that prepares its payments: the lost attempt may have stored the platform's key. Without it, no lookup and
// no time releases the payment.
func TestLostPreparation(t *testing.T) {
	d, shop := newLoss(t)
	key := d.AddPendingPayment(shop, 1, lostAt.Add(-time.Hour), func(e *ledger.Entry) {
		e.State, e.Response = ledger.Reserved, ledger.Response{}
		e.Route.Operator, e.Route.Country, e.Route.Account = "orange", "CM", "orange-cm/a1"
	}).Key
	change(d, check(file(t, "lines.log", logLine("pay", "ShopA", "ShopA_1", lostAt))))
	e := d.MustReadEntry(key)
	d.Equal("entry", fmt.Sprint(e.State, " ", e.Request.Restored()), "unknown true")
}

// A released entry with a later line is made unknown: its retry may have been applied.
func TestReopensReleased(t *testing.T) {
	d, shop := newLoss(t)
	key := d.AddUnknownCharge(shop, "c-1")
	d.Update(key, func(e *ledger.Entry) { e.State, e.Request.Fingerprint = ledger.Released, "f" })
	log := file(t, "lines.log", logLine("charge", "ShopA", "c-1", lostAt))
	d.Equal("reopened", change(d, check(log)).Reopened, 1)
	e := d.MustReadEntry(key)
	d.Equal("entry", fmt.Sprint(e.State, " ", e.Request.Restored()), "unknown true")
	d.Equal("a second run", change(d, check(log)).Reopened, 0)
}

// A list shows a key by its first request. The lost retry of a released key may be known by that row only.
func TestReopensReleasedOfListBeforeTheMoment(t *testing.T) {
	for state, want := range map[string]string{"": "unknown 1 1", "done": "unknown 1 1", "released": "released 0 0"} {
		t.Run(state, func(t *testing.T) {
			d, shop := newLoss(t)
			key := d.AddUnknownCharge(shop, "c-1")
			d.Update(key, func(e *ledger.Entry) { e.State, e.Request.Fingerprint = ledger.Released, "f" })
			unknown := d.AddUnknownCharge(shop, "c-2")
			before := d.MustReadEntry(unknown)
			list := file(t, "list.csv", "kind,client_correlator,created_at,state",
				"charge,c-1,2026-02-28T11:30:00Z,"+state,
				"charge,c-2,2026-02-28T11:30:00Z,", "charge,refused,2026-02-28T11:30:00Z,")
			view := change(d, "restore check --at "+moment+" --list ShopA="+list)
			d.Equal("result", fmt.Sprint(d.MustReadEntry(key).State, " ", view.Keys, view.Reopened), want)
			d.Equal("the unknown one", d.MustReadEntry(unknown), before)
			d.Equal("entries", len(d.Ledger.All()), 2)
		})
	}
}

// The moment may lie between a charge and the item of its referenceCode. Another correlator must not charge it again.
func TestBindsTheReferenceOfAPresentCharge(t *testing.T) {
	for _, state := range []ledger.State{ledger.Reserved, ledger.Unknown, ledger.Released} {
		t.Run(string(state), func(t *testing.T) {
			d, shop := newLoss(t)
			key := d.AddUnknownCharge(shop, "c-1")
			d.Update(key, func(e *ledger.Entry) { e.State, e.Request.ReferenceCode = state, "REF-1" })
			log := file(t, "lines.log", logLine("charge", "ShopA", "c-1", lostAt))
			list := file(t, "list.csv", "kind,client_correlator,reference_code", "charge,c-1,REF-2")
			change(d, check(log)+" --list ShopA="+list)
			for _, reference := range []string{"REF-1", "REF-2"} {
				owner, err := d.Ledger.ChargeOfReference(t.Context(), shop.ID, reference)
				if err != nil || owner != key.ID {
					t.Errorf("%s is of %q (%v), want the charge", reference, owner, err)
				}
			}
		})
	}
}
