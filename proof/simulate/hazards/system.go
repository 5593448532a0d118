package hazards

import (
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
)

// planFailingTable makes the profile of one merchant unreadable, or lets all writes of the ledger fail.
func planFailingTable(w *world.World, length time.Duration) {
	at := w.Tape.Choose("failing table", len(w.Merchants.Shops)+1)
	if at == len(w.Merchants.Shops) {
		w.ReadOnly = w.DrawWindow(length, time.Minute, 20*time.Minute, 3*time.Hour)
		return
	}
	w.Unreadable[w.Merchants.Shops[at].Profile.ID] = w.DrawWindow(length, time.Hour, 24*time.Hour, 3*24*time.Hour)
}

func planStreamOff(w *world.World, length time.Duration) {
	w.Stream.Off = w.DrawWindow(length, time.Hour, 23*time.Hour)
}

// planSweepOff turns the sweep off for hours. Often SMS expire meanwhile, while something of them is due. Its place in
// hazards is before the operators that forget refusals: they are in no history with a short retention. No instance
// lives as long as this retention, so none continues the work on an expired SMS.
func planSweepOff(w *world.World, length time.Duration) {
	w.Schedule.Off = w.DrawWindow(length, 3*time.Hour, 12*time.Hour)
	if w.Tape.Choose("SMS expire meanwhile", 2) == 1 {
		setSMSRetention(w, 8*time.Hour)
	}
}

// planNewerVersion lets a newer version run beside the older. It may have a timer that the older does not know.
func planNewerVersion(w *world.World, _ time.Duration) {
	w.HasNewerVersion, w.HasNewerTimer = true, w.Tape.ChooseApart("a newer timer", 4) == 3
}

// poisonRecords are records that no version of the gateway has written.
var poisonRecords = []string{
	`{"Records":[{"eventID":"1","dynamodb":{"NewImage":{"pk":{"S":"pay#poison"},"wr":{"S":"1"},"v":{"N":"x"}}}}]}`,
	`{"Records":[{"eventID":"2","dynamodb":{"NewImage":{"pk":{"N":"7"}}}}]}`,
	`{"Records":[{"eventID":"3","dynamodb":{}},{"eventID":"4"}]}`,
	`{"Records":[{"eventID":"5","dynamodb":{"NewImage":"text"}}]}`,
}

func planPoisonRecords(w *world.World, length time.Duration) {
	for range 1 + w.Tape.Choose("poison records", 3) {
		record := []byte(tape.Draw(w.Tape, "poison record", poisonRecords...))
		w.Kernel.At(w.DrawStart(length), "poison record", func() {
			w.Invoke(deployment.Relay, record, func(r deployment.Result) {
				if r.Err != nil {
					w.Check.PoisonFailed(r.Err)
				}
			})
		})
	}
}

func planUndecodableItem(w *world.World, length time.Duration) {
	w.Kernel.At(w.DrawStart(length), "undecodable item", w.StoreUndecodable)
}

// planDeletions deletes expired items some days late, or soon after their expiry.
func planDeletions(w *world.World, _ time.Duration) {
	interval := tape.Draw(w.Tape, "interval of deletions", 6*time.Hour, 47*time.Hour)
	for at := history.Start.Add(interval); at.Before(w.End); at = at.Add(interval) {
		w.Kernel.At(at, "deletions", func() {
			for _, table := range []string{fixture.LedgerTable, fixture.LimitTable} {
				for _, key := range w.Database.Expirable(table) {
					w.Database.Expire(table, key)
				}
			}
		})
	}
}

// planFewProcesses bounds how many instances of a function run at a time, while orders come at the same time.
func planFewProcesses(w *world.World, length time.Duration) {
	w.Rates.Processes = tape.Draw(w.Tape, "processes of a function", 2, 1)
	for number := range 2 {
		kind := tape.Draw(w.Tape, "kind of order", deployment.Pay, deployment.SMS)
		w.Merchants.DrawOf(kind, extraOrders+number, length)
	}
}

// planStoppedTimers lets functions continue after a freeze as if no time had passed, so that outcomes are stored late.
func planStoppedTimers(w *world.World, _ time.Duration) { w.TimersStop, w.Rates.Freeze = true, 60 }
