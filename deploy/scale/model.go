package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"mobilegateway/deploy/bill"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
)

// AWS's quotas and limits, from its public pages as known on 2026-11-27.
const (
	// apiRequests is the default quota of API Gateway a second, for all APIs of an account and region.
	// https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
	apiRequests = 10_000
	// partitionUnits is what one partition of a table or an index can write a second, and so what one key can.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html
	partitionUnits = 1_000
	// secretReads is the quota of GetSecretValue a second.
	// https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html
	secretReads = 10_000
	// tracedPart is the part of the requests that X-Ray records by its default rule, besides one a second.
	// https://docs.aws.amazon.com/xray/latest/devguide/xray-console-sampling.html
	tracedPart = 0.05
)

// traffic is the load of the model.
type traffic struct {
	rate       float64 // operations a second
	largest    float64 // the part of the largest merchant
	operatorMS float64 // how long a call of an operator takes
}

// use is what some traffic of one operation uses.
type use struct {
	name string
	traffic
	concurrency   map[string]float64 // by function
	total         float64            // of all functions
	requests      float64            // of API Gateway a second
	tableUnits    float64            // write units of the table a second
	dueUnits      float64            // of one of the shards of the index due
	dayUnits      float64            // of the largest merchant's key of the index day
	records       float64            // that wake the relay a second
	secrets       float64            // reads of secrets a second
	logMB, traces float64            // a second
	dollarsDay    float64            // of the operations
	secretsDay    float64            // dollars a day for reads of secrets
	tracesDay     float64            // dollars a day for traces
}

// maxParallelism is the most batches of a shard that are handled at once: a limit of AWS.
// https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html
const maxParallelism = 10

// dueShards is the number of keys over which the index due is spread.
const dueShards = float64(ledger.DueShardsWritten)

const daySeconds = 86_400

// use computes what some traffic of an operation uses.
func (m model) use(o bill.Operation, t traffic) use {
	u := use{name: o.Name, traffic: t, concurrency: map[string]float64{}}
	for _, r := range o.Runs {
		u.tableUnits += t.rate * r.TableUnits
		u.dueUnits += t.rate * r.DueUnits / dueShards
		u.dayUnits += t.rate * t.largest * r.DayUnits
		u.logMB += t.rate * bill.LogLinesKB / 1024
		u.traces += tracedPart * t.rate
		if r.ViaAPI {
			u.requests += t.rate
			u.logMB += t.rate * bill.AccessLogKB / 1024
		}
		if r.Function == "relay" {
			u.records += t.rate
		}
	}
	shards := float64(max(partitions(u.tableUnits), newTableShards))
	for _, r := range o.Runs {
		busy := t.rate * r.Milliseconds(t.operatorMS) / 1000
		if r.Function == "relay" {
			busy = math.Min(busy, maxParallelism*shards)
		}
		u.concurrency[r.Function] += busy
		u.total += busy
		u.secrets += busy * m.secrets[r.Function] / keyring.RenewalInterval.Seconds()
	}
	const perMillion = daySeconds / 1e6
	u.dollarsDay = o.Price(t.operatorMS).Total() * t.rate * perMillion
	u.secretsDay = u.secrets * perMillion * bill.SecretRead
	u.tracesDay = u.traces * perMillion * bill.Trace
	return u
}

// partitions is the number of partitions that some write units a second need.
func partitions(units float64) int { return max(int(math.Ceil(units/partitionUnits)), 1) }

// useColumns are the heads of the table.
var useColumns = [...]string{
	"A second", "Operator, s", "Concurrency", "API requests", "Partitions of the table", "Units of a `due` key",
	"Units of a `day` key", "Records of the relay", "Secret reads", "Logs, MB", "Traces", "$ a day", "of it secrets",
	"traces",
}

func useTable(all []use) string {
	var b strings.Builder
	b.WriteString("| " + strings.Join(useColumns[:], " | ") + " |\n" + strings.Repeat("|---:", len(useColumns)) + "|\n")
	for _, u := range all {
		fmt.Fprintf(&b, "| %s %s | %.1f | %s | %s | %d | %s | %s | %s | %s | %.1f | %s | %s | %s | %s |\n",
			thousands(u.rate), shortName(u.name), u.operatorMS/1000, thousands(u.total), thousands(u.requests),
			partitions(u.tableUnits), marked(u.dueUnits), marked(u.dayUnits), thousands(u.records),
			thousands(u.secrets), u.logMB, thousands(u.traces), thousands(u.dollarsDay+u.secretsDay+u.tracesDay),
			thousands(u.secretsDay), thousands(u.tracesDay))
	}
	return b.String()
}

// marked shows the units of one key, in bold above what one key can write.
func marked(units float64) string {
	if units > partitionUnits {
		return "**" + thousands(units) + "**"
	}
	return thousands(units)
}

// shortName is an operation's name without what it includes, in the plural.
func shortName(name string) string {
	first, _, _ := strings.Cut(name, ",")
	if first == bill.SMS {
		return first
	}
	return first + "s"
}

// thousands writes a rounded number below a million, with a comma before its last three digits.
func thousands(n float64) string {
	rounded := int(math.Round(n))
	if rounded < 1000 {
		return strconv.Itoa(rounded)
	}
	return fmt.Sprintf("%d,%03d", rounded/1000, rounded%1000)
}
