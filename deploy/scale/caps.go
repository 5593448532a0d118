package main

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"mobilegateway/deploy/bill"
	"mobilegateway/world/lambda"
	"mobilegateway/world/template"
)

// limit is a rate of operations at which a part is full, and what lifts it.
type limit struct {
	rate       float64 // operations a second
	part, lift string
}

// limits returns the rates at which each part is full, the lowest first: for one operation, in an account.
func (m model) limits(o bill.Operation, a account, t traffic) []limit {
	t.rate = 1
	one := m.use(o, t)
	var all []limit
	add := func(available, each float64, part, lift string) {
		if each > 0 {
			all = append(all, limit{available / each, part, lift})
		}
	}
	for function, busy := range one.concurrency {
		if function == "relay" {
			continue // its records wait; below
		}
		add(float64(a.available(function)), busy, "concurrency of `"+function+"`",
			"`AccountConcurrency`, or `"+strings.ToUpper(function[:1])+function[1:]+"Concurrency`")
	}
	add(float64(a.operatorCalls()), m.operatorSeconds(o, t), "waiting calls, if one operator has all",
		"`OperatorShare`, `AccountConcurrency`")
	add(m.throttle, 1, "stage: `ThrottleRate` of a route", "`ThrottleRate`, `ThrottleBurst`")
	add(apiRequests, one.requests, "API Gateway: requests of the account", "a quota of AWS")
	add(partitionUnits, one.dueUnits, "`due`: one key writes 1,000 units",
		"[more partitions](deploy.md#add-partitions-of-the-due-index), in two releases")
	add(partitionUnits, one.dayUnits, "`day`: one key writes 1,000 units, for the largest merchant",
		"`--day-shards` of [this merchant](internals.md#day-shards)")
	add(partitionUnits, t.largest*rateUnits, "`rate`: one key of the limits, if the largest merchant has a rate",
		"no rate for this merchant")
	if o.Name != bill.SMS {
		add(partitionUnits, t.largest*amountUnits,
			"`day`: one key of the limits, if the largest merchant has an amount",
			"no amount for this merchant")
	}
	add(newTableShards*partitionUnits, one.tableUnits, "a new table: 4 partitions", "warm throughput, or time")
	add(m.relayRecords(a), one.records, "relay: records of 4 shards, the rest waits for the sweep",
		"`StreamParallelism`, `RelayConcurrency`, more partitions")
	add(secretReads, one.secrets, "Secrets Manager: reads of the account", "no parameter: `keyring.RenewalInterval`")
	slices.SortFunc(all, func(x, y limit) int {
		return cmp.Or(cmp.Compare(x.rate, y.rate), cmp.Compare(x.part, y.part))
	})
	return all
}

// newTableShards is the number of partitions of a new table on demand, and so of the shards of its stream: 4,000 write
// units a second, 1,000 for each partition.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html, 2026-11-27.
const newTableShards = 4

// The write units of one key of the limits' table for each request of a merchant that has the limit: a transaction of
// two items takes two for each.
const (
	rateUnits   = 1
	amountUnits = 2
)

// model has what the template and the measurements say.
type model struct {
	throttle      float64 // requests a second of a route, in prod
	account       int     // AccountConcurrency of prod
	batch         float64 // records of a batch of the stream
	relayEach     float64 // seconds of the relay's processor share for one record
	sweepEach     float64 // seconds of the sweep's processor share for one due entry
	sweepSeconds  float64 // of a minute in which a sweep begins work
	batchOverhead float64 // seconds of a batch besides
	// secrets are the secrets that each function reads.
	secrets map[string]float64
}

func newModel(root string, capacity map[string]capacityRow) (model, error) {
	deployed, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{})
	if err != nil {
		return model{}, err
	}
	throttle, throttleErr := productionParameter(root, "ThrottleRate")
	account, err := productionParameter(root, "AccountConcurrency")
	if err = cmp.Or(throttleErr, err); err != nil {
		return model{}, err
	}
	m := model{
		account: int(account), throttle: throttle, batchOverhead: bill.MerchantMS / 1000, secrets: map[string]float64{},
	}
	for _, f := range deployed.Functions {
		for variable := range f.Environment {
			if strings.HasSuffix(variable, "_SECRET") {
				m.secrets[f.Name]++
			}
		}
	}
	m.batch = float64(deployed.Function("relay").Streams[0].BatchSize)
	m.sweepSeconds = deployed.Function("sweep").Timeout.Seconds() - sweepMargin
	for name, each := range map[string]*float64{relayWork: &m.relayEach, sweepWork: &m.sweepEach} {
		row, found := capacity[name]
		if !found {
			return model{}, fmt.Errorf("%s has no row %q of capacity", pagePath, name)
		}
		*each = row.cpuMS / 1000 * lambda.ProcessorMB / math.Min(row.memoryMB, lambda.ProcessorMB)
	}
	return m, nil
}

// operatorSeconds is how long one operation waits for operators.
func (m model) operatorSeconds(o bill.Operation, t traffic) (seconds float64) {
	for _, r := range o.Runs {
		seconds += r.Operator * t.operatorMS / 1000
	}
	return seconds
}

// relayRecords is how many records a second the relay processes in a new table's shards.
func (m model) relayRecords(a account) float64 {
	batches := float64(a.parallelism * newTableShards)
	if reserved := a.reserved["relay"]; reserved > 0 {
		batches = math.Min(batches, float64(reserved))
	}
	return batches * m.batch / (m.batch*m.relayEach + m.batchOverhead)
}

// sweepEntries is how many due entries the sweeps of a minute process, if no system is slow.
func (m model) sweepEntries(a account) float64 {
	return float64(len(a.sweeps)) * m.sweepSeconds / m.sweepEach
}

func limitTable(all []limit) string {
	var b strings.Builder
	b.WriteString("| Operations a second | Full is | Lifted by |\n|---|---|---|\n")
	for _, l := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", thousands(math.Floor(l.rate)), l.part, l.lift)
	}
	return b.String()
}

// hangTable has what one operator's hang leaves in each account.
func (m model) hangTable(all []account) string {
	var b strings.Builder
	b.WriteString("| `AccountConcurrency` | waiting calls of one operator at most | left of `charge`, `pay`, `sms` | " +
		"records of the relay a second | due entries a minute |\n|---|---|---|---|---|\n")
	for _, a := range all {
		left := func(function string) int { return a.available(function) - a.operatorCalls() }
		fmt.Fprintf(&b, "| %s | %s | %d, %d, %d | %s | %s |\n", thousands(float64(a.concurrency)),
			thousands(float64(a.operatorCalls())), left("charge"), left("pay"), left("sms"),
			thousands(math.Floor(m.relayRecords(a))), thousands(math.Floor(m.sweepEntries(a))))
	}
	return b.String()
}
