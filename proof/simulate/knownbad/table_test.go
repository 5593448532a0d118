package knownbad

import (
	"maps"
	"slices"
	"strings"

	"mobilegateway/proof/simulate/outside"
)

// variant is one deliberate bug.
type variant struct {
	name       string
	breaks     string  // what the bug breaks
	invariants []int   // the numbers of the invariants that it violates; 0 is a history that does not end
	edits      []edit  // almost always one; further ones remove a second defence
	world      choices // what its histories have in common; nil for those that make simulate runs
	platforms  bool    // its histories have the operators' platforms
	excluded   string  // why the simulator need not find it; "" for a variant that it must find
}

// choices are forced choices of a history, by the labels of the simulator. The last alternative is any high number.
type choices map[string]int

// last is the last alternative of a choice.
const last = 1 << 20

// calls is a history of one kind of order (0 a charge, 1 a payment, 2 an SMS), whose operator has frequent faults.
func calls(kind int, faults ...outside.Fault) choices {
	return kindOfOrder(kind).with(faultsOf(outside.OperatorCalls, faults...))
}

func kindOfOrder(kind int) choices {
	return choices{"kind of order": kind, "only one merchant and one operator have faults": 0}
}

// faultsOf makes faults of a group frequent.
func faultsOf(group outside.Group, faults ...outside.Fault) choices {
	forced := choices{"has faults of " + string(group): 1, "rate": last}
	for _, fault := range faults {
		forced["has "+string(fault)] = last
	}
	return forced
}

// always makes a fault the only one of its group, beside lies, and injects it at each occasion.
func always(group outside.Group, fault outside.Fault) choices {
	forced := faultsOf(group, fault).with(choices{string(group): last})
	for _, other := range outside.FaultsOf(group) {
		if other != fault && !strings.HasPrefix(string(other), "lie: ") {
			forced["has "+string(other)] = 0
		}
	}
	return forced
}

// serverDown is a history of an SMS whose merchant's server fails for days, in one way: 1 responds 500, last 410.
func serverDown(failure int) choices {
	return kindOfOrder(2).with(faultsOf(outside.MerchantServers, outside.ServerDown)).with(choices{
		string(outside.MerchantServers): last, "start": 0, "length of the faults": last,
		"merchant: start of the failure":  0,
		"merchant: length of the failure": last, "merchant: kind of failure": failure,
	})
}

// with adds forced choices.
func (c choices) with(more choices) choices {
	all := maps.Clone(c)
	maps.Copy(all, more)
	return all
}

// edit replaces a text that is exactly once in a file, inside a function.
type edit struct{ file, original, bad string }

// variants is the table: all deliberate bugs.
var variants = slices.Concat(outcomeVariants, ledgerVariants, callVariants, notificationVariants, sweepVariants,
	platformVariants, hazardVariants, circuitVariants)

// requiredVariants are the classic mistakes of a payment gateway. The table must have them, and the simulator must find
// each of them.
var requiredVariants = []string{
	"no-fencing", "blind-retry", "timeout-is-not-applied", "lapsed-lease-is-free", "delete-on-error",
	"outbox-after-the-state", "unconditional-write", "replay-keyed-by-body", "no-rescheduling", "old-image-posted",
	"claims-counted-as-attempts", "duplicate-without-a-send", "refund-without-fence", "forged-token-accepted",
	"token-in-log", "endpoint-never-enabled", "not-found-is-failed",
}

// The files with several variants.
const (
	bookFile       = "shared/ledger/book.go"
	entryFile      = "shared/ledger/entry.go"
	outboxFile     = "shared/ledger/outbox.go"
	outcomeFile    = "shared/ledger/outcome.go"
	paymentFile    = "shared/ledger/report.go"
	replayFile     = "shared/ledger/replay.go"
	progressFile   = "shared/ledger/progress.go"
	storeFile      = "shared/ledger/dynamo/store.go"
	pipelineFile   = "shared/operation/pipeline.go"
	reserveFile    = "shared/operation/reserve.go"
	callFile       = "shared/operation/outcome.go"
	carrierAPIFile = "shared/operator/carrierapi/carrierapi.go"
	classifyFile   = "shared/operator/carrierapi/outcome.go"
	courierFile    = "shared/delivery/courier.go"
	userSMSFile    = "shared/delivery/user_sms.go"
	counterFile    = "shared/dailyamount/counter.go"
	notifFile      = "functions/notif/notif.go"
	resendFile     = "functions/resend/resend.go"
	deliverFile    = "functions/sweep/deliver.go"
	lookupFile     = "functions/sweep/lookup.go"
	applyFile      = "shared/confirm/apply.go"
)
