package engineers

import (
	"time"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// PlanLostRetries plans restores of the ledger that lose the last attempt of each payment without an outcome, and what
// gatewayctl restore check then does with such entries. Both are one event, because the functions stay stopped until
// the command has succeeded. Nothing is drawn.
func (e *Engineers) PlanLostRetries(every time.Duration, times int) {
	for number := range times {
		e.Kernel.At(history.Start.Add(time.Duration(number+1)*every), "restore of the ledger", e.loseRetries)
	}
}

func (e *Engineers) loseRetries() {
	var uncertain []*ledger.Entry
	for entry := range e.Entries.All() {
		if entry.Kind == ledger.Payment && entry.State == ledger.Unknown && !entry.StatusFinal() {
			uncertain = append(uncertain, entry)
		}
	}
	now := ledger.Timestamp(time.Now())
	for _, known := range uncertain {
		// As it was after its first reservation. Another platform's data is of a response, which the attempt lacks.
		prepares, restored := operator.CapabilitiesOf(known).Prepares, known.Clone()
		restored.ReservedAt = restored.CreatedAt
		if prepares {
			restored.DriverData = ""
		}
		checked := restored.Clone()
		if checked.LoseRetry(known.ReservedAt, prepares, now) {
			e.Count("lost retry")
			if err := ledgertest.CheckWrite(restored, checked, ledger.LoseRetry); err != nil {
				e.Fail("%s", err)
			}
		}
		checked.Version, checked.Writer, checked.UpdatedAt = checked.Version+1, "restore", now
		checked.Reschedule()
		e.ReplaceItem(checked)
	}
}
