package explore

import (
	"context"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// personAct is one act of a person on the entry. It is nil if it does not apply.
type personAct struct {
	name string
	do   func(ctx context.Context) error
}

// addPerson adds one act of a person: resolve an unknown outcome by what the operator knows, replay notifications, or
// enable an endpoint. The search chooses among those that apply.
func (x stage) addPerson() {
	a := x.newActor(actorPerson, "person", "")
	a.enabled = func() bool { return len(x.personActs(a)) > 0 }
	a.start = func() {
		acts := x.personActs(a)
		if x.operator != nil {
			x.operator.Advance(time.Now()) // a payer may have decided meanwhile
		}
		act := acts[x.search.choose("which act", len(acts))]
		x.Logf("person: %s", act.name)
		a.seen.add("act", hashBytes([]byte(act.name)))
		x.perform(a, func(r deployment.Result) {
			if r.Err != nil {
				x.Logf("person: %s", r.Err)
			}
		}, func() deployment.Result { return deployment.Result{Err: act.do(context.Background())} })
	}
}

// personActs lists the acts that apply now.
func (x stage) personActs(a *actor) []personAct {
	var acts []personAct
	store := a.parts.LedgerStore()
	book := a.parts.Book(store)
	now := ledger.Timestamp(time.Now())
	for e := range x.Entries.All() { // there is one
		change := func(change func(*ledger.Entry) (ledger.Transition, error)) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := book.Change(ctx, e.Key, change)
				return err
			}
		}
		if m, known := x.truth(e); known && e.Clone().ResolveManually(m, now) == nil {
			acts = append(acts, personAct{"resolves as " + m.Outcome, change(
				func(e *ledger.Entry) (ledger.Transition, error) {
					return ledger.ResolveManually, e.ResolveManually(m, ledger.Timestamp(time.Now()))
				})})
		}
		if replayable(e) != "" {
			acts = append(acts, personAct{"replays the notifications", change(
				func(e *ledger.Entry) (ledger.Transition, error) {
					id := replayable(e)
					replayed := id != "" && e.Outbox.ReplayNotification(id, ledger.Timestamp(time.Now()))
					return ledger.Replay.If(replayed), nil
				})})
		}
		if x.disabledEndpoint() {
			acts = append(acts, personAct{"enables the endpoint", func(ctx context.Context) error {
				return x.enableEndpoint(ctx, a.instance, e.Key, e.Outbox.URL)
			}})
		}
	}
	return acts
}

// truth is the manual outcome that is true at the operator. A person waits until no request is in progress.
func (x stage) truth(e *ledger.Entry) (ledger.ManualOutcome, bool) {
	m := ledger.ManualOutcome{Owner: e.Owner, ResponseStatus: 400, ResponseBody: []byte(`{}`), Lifetime: 72 * time.Hour}
	for _, a := range x.actors {
		if a.inFlight() && a.function == x.order.Function {
			return m, false
		}
	}
	if x.operator == nil || x.lateEffect {
		return m, false
	}
	m.Who, m.Reason = "engineer", "simulated"
	m.NotifyURL = x.order.Shop.Profile.ChargeNotifURL()
	if e.Kind == ledger.Payment {
		status, at, found := x.operator.FinalStatus(e.Route.UpstreamKey)
		m.Outcome = status
		return m, found && !at.After(time.Now())
	}
	m.Outcome = ledger.ManuallyNotApplied
	for _, effect := range x.operator.Effects() {
		if effect.Kind != outside.KindPayerSMS {
			m.Outcome = ledger.ManuallyApplied
		}
	}
	return m, true
}

// replayable is the id of the first notification that was delivered, is dead or is parked.
func replayable(e *ledger.Entry) string {
	if len(e.Outbox.Delivered) > 0 {
		return e.Outbox.Delivered[0].ID
	}
	for _, n := range e.Outbox.Waiting {
		if n.DeadReason != "" || n.Parked {
			return n.ID
		}
	}
	return ""
}

// disabledEndpoint reports whether an endpoint of the order was disabled.
func (x stage) disabledEndpoint() bool {
	for _, item := range x.Database.Items(fixture.LedgerTable) {
		if item["disabled_at"] != nil {
			return true
		}
	}
	return false
}

// enableEndpoint does what `gatewayctl endpoint enable` does: it enables the endpoint first, and then queues what is
// parked.
func (x stage) enableEndpoint(ctx context.Context, i *instance, key ledger.Key, url string) error {
	store := webhookdynamo.New(i.parts.DynamoDB(), fixture.LedgerTable, i.Now)
	store.Start = i.parts.Start
	health, err := store.Health(ctx, webhook.Endpoint{MerchantID: x.order.Shop.Profile.ID, URL: url})
	if err != nil || health.Enabled() {
		return err
	}
	if saved, err := store.SaveDisabled(ctx, health.AfterEnable(i.Now())); err != nil || !saved {
		return err
	}
	_, err = i.parts.Book(i.parts.LedgerStore()).Change(ctx, key, func(e *ledger.Entry) (ledger.Transition, error) {
		return ledger.Unpark.If(e.Outbox.Unpark(ledger.Timestamp(time.Now()))), nil
	})
	return err
}
