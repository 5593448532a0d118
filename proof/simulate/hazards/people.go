package hazards

import (
	"context"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/engineers"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
)

// extraOrders is the first number of the orders that a hazard adds.
const extraOrders = 10

func planSuspension(w *world.World, length time.Duration) {
	s := tape.Draw(w.Tape, "shop", w.Merchants.Shops...)
	suspended := w.DrawWindow(length, 5*time.Minute, 10*time.Hour)
	w.Engineers.At(suspended.From, "suspension", func(i *deployment.Instance) { w.Engineers.Suspend(s, i) })
	w.Engineers.At(suspended.To, "resumption", func(i *deployment.Instance) { w.Engineers.Resume(s, i) })
}

// planEarlyEngineer lets the engineer work also while faults happen.
func planEarlyEngineer(w *world.World, length time.Duration) {
	for range 1 + w.Tape.Choose("rounds", 3) {
		w.Kernel.At(w.DrawStart(length).Add(30*time.Minute), "engineer", w.Engineers.Round)
	}
}

// planBusyMerchant lets a merchant read a status again and again, more often than its profile's cache lives, while an
// engineer suspends it, or limits its rate.
func planBusyMerchant(w *world.World, length time.Duration) {
	const interval, rounds, atOnce = 20 * time.Second, 21, 3
	s := tape.Draw(w.Tape, "shop", w.Merchants.Shops...)
	o := w.Merchants.Add(s, deployment.Charge, 10*extraOrders)
	o.Start = w.DrawStart(length).Add(time.Minute)
	change := tape.Draw(w.Tape, "change of a busy merchant", w.Engineers.SuspendShortly, w.Engineers.LimitRequests)
	w.Engineers.At(o.Start.Add(interval/2), "change", func(i *deployment.Instance) { change(s, i) })
	for number := range rounds * atOnce {
		at := o.Start.Add(time.Duration(number/atOnce) * interval)
		w.Kernel.At(at, "status read", func() { w.Merchants.Read(o, merchants.ReaderOwner) })
	}
}

// planNewAddress lets an engineer change the provisioned address of a merchant whose server is well, and replay a
// payment before and after that.
func planNewAddress(w *world.World, length time.Duration) {
	s := tape.Draw(w.Tape, "shop", w.Merchants.Shops...)
	w.Merchants.Servers[s.Host].Faults = &outside.Faults{}
	provisioned := *s
	provisioned.NotifyURL = ""
	o := w.Merchants.Add(&provisioned, deployment.Pay, 10*extraOrders)
	o.Start = w.DrawStart(length)
	w.Merchants.Schedule(o, "order")
	moved := o.Start.Add(tape.Draw(w.Tape, "time of a new address", 10*time.Minute, 26*time.Hour))
	w.BrokenUntil(moved.Add(time.Hour))
	replay := []string{"deliveries", "replay", o.Wanted.Key}
	w.Engineers.At(moved, "new address", func(i *deployment.Instance) {
		w.Engineers.Run(i, replay...)
		_ = i.Sleep(context.Background(), 20*time.Second)
		change := []string{"merchant", "change", s.Name, "--notif-url", s.Profile.NotifURL + engineers.NewAddress}
		if _, done := w.Engineers.Run(i, change...); done {
			w.Merchants.Account(s).MovedAt = time.Now()
		}
		w.Engineers.Run(i, replay...)
	})
	w.Kernel.At(moved.Add(10*time.Minute), "replay", func() { w.Engineers.Do(replay) })
}

// planSends lets an engineer send what waits for a later attempt, or enable all endpoints of a merchant, at any time.
func planSends(w *world.World, length time.Duration) {
	for range 1 + w.Tape.Choose("sends", 3) {
		s := tape.Draw(w.Tape, "merchant of a send", w.Merchants.Shops...)
		command := []string{"deliveries", "send", "--merchant", s.Name, "--since", history.Start.Format(time.DateOnly)}
		if w.Tape.Choose("command of a send", 2) == 1 {
			command = []string{"endpoint", "enable", s.Name, "--all"}
		}
		at := w.DrawStart(length).Add(time.Duration(w.Tape.Choose("minutes to a send", 60)) * time.Minute)
		w.Kernel.At(at, "send", func() { w.Engineers.Do(command) })
	}
}

// planChanges lets an engineer make changes while merchants and operators are at work.
func planChanges(w *world.World, length time.Duration) { w.Engineers.DrawChanges(length) }

// planDayShards lets an engineer raise the number of partitions of a merchant's days, and lower it while orders come.
// At the last round the engineer exports the merchant's days.
func planDayShards(w *world.World, length time.Duration) {
	s := tape.Draw(w.Tape, "shop", w.Merchants.Shops...)
	w.Engineers.Exported = s
	for number, shards := range []string{"5", "2"} {
		at := history.Start.Add(time.Duration(number) * length / 2)
		w.Engineers.At(at, "partitions", func(i *deployment.Instance) {
			w.Engineers.Run(i, "merchant", "change", s.Name, "--day-shards", shards)
		})
	}
	for number := range 3 {
		w.Merchants.DrawOfShop(s, deployment.Pay, 20*extraOrders+number, length)
	}
}
