// Package alarms has the table of all alarms of a gateway. deploy/alarms.yaml, the alarms of template.yaml, and on
// docs/operations.md their table and the beginning of each one's section are generated from it.
package alarms

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"mobilegateway/shared/telemetry"
)

//go:generate go run ./generate

// Limits and times of CloudWatch.
const (
	// MaxMetrics is how many metrics one alarm may read.
	MaxMetrics = 10
	// evaluation is how often CloudWatch evaluates an alarm that spans at most a day.
	evaluation = time.Minute
	// arrival is how late a metric usually is after its event. AWS names no bound.
	arrival = 2 * time.Minute
	// lookback is how many periods before the last ones CloudWatch searches for real points, before it treats a
	// missing one as TreatMissingData says. AWS's examples have two, and AWS names no bound.
	lookback = 2
)

// missing is how an alarm treats a period without a value.
type missing string

const (
	filled       missing = "filled"       // FILL makes it 0, so CloudWatch never looks back
	notBreaching missing = "notBreaching" // the alarm is OK, unless CloudWatch finds older points
	breaching    missing = "breaching"    // the alarm goes off, unless CloudWatch finds older points
	ignored      missing = "ignore"       // the state stays, which is what CloudWatch does with DynamoDB's metrics
)

// dimension is one dimension of a metric. value is YAML: a literal or a reference.
type dimension struct{ name, value string }

// metric is a metric that an alarm reads.
type metric struct {
	id, namespace, name, statistic string
	dimensions                     []dimension
}

// Alarm is one alarm. It goes off if its condition is true in some of the last periods.
type Alarm struct {
	Name            string
	Description     string // the condition, for the person who gets the message
	Runbook         string // the heading of docs/operations.md; several alarms may have the same
	InGateway       bool   // it is in template.yaml, so that a stack has it without alarms.yaml
	expression      string // of the metrics
	substitutes     bool   // the expression has ${parameters}
	metrics         []metric
	period          time.Duration
	below           bool // the condition is a value below the threshold, else at or above
	threshold       int
	points, periods int // the condition must be true in so many of so many periods
	missing         missing
	goesOff         string // the condition in words, for the page; empty for a count
}

// goesOffAfter bounds the time from the beginning of a lasting cause to the alarm, if the metric is as late as usual.
func (a Alarm) goesOffAfter() time.Duration {
	bound := time.Duration(a.points)*a.period + evaluation + arrival
	if a.missing == breaching { // CloudWatch waits until it finds no older point
		bound += lookback * a.period
	}
	return bound
}

// okAfter bounds the time from the end of the cause to OK. It is false for an alarm that keeps its state without a
// point.
func (a Alarm) okAfter() (bound time.Duration, bounded bool) {
	bound = time.Duration(a.periods-a.points+1)*a.period + evaluation + arrival
	if a.missing == notBreaching {
		bound += lookback * a.period
	}
	return bound, a.missing != ignored
}

// numbers are the counts that the page writes as words.
var numbers = map[int]string{1: "one", 2: "two", 3: "three", 5: "five", 10: "ten"}

// condition returns when the alarm goes off.
func (a Alarm) condition() string {
	text := a.goesOff
	if text == "" {
		text = numbers[a.threshold]
	}
	switch {
	case a.goesOff != "" && a.points == 1:
		return text
	case a.points == 1:
		return text + " in " + span(a.period)
	}
	return fmt.Sprintf("%s, in %d of %d periods of %s", text, a.points, a.periods, span(a.period))
}

// span writes a duration in whole minutes or hours.
func span(d time.Duration) string {
	switch {
	case d == time.Minute:
		return "a minute"
	case d == time.Hour:
		return "an hour"
	case d >= 2*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%d hours and %d minutes", d/time.Hour, d%time.Hour/time.Minute),
			" and 0 minutes")
	}
	return fmt.Sprintf("%d minutes", d/time.Minute)
}

// Beginnings returns, for each section of docs/operations.md about one alarm, what the alarm means and the command that
// shows its log lines. Such an alarm is the only one of its section.
func Beginnings() map[string]string {
	found, times := map[string]string{}, map[string]int{}
	for _, a := range All() {
		found[a.Runbook] = "**It means:** " + a.Description + ".\n"
		if command := a.linesCommand(); command != "" {
			found[a.Runbook] += "\n```sh\n" + command + "\n```\n"
		}
		times[a.Runbook]++
	}
	maps.DeleteFunc(found, func(runbook, _ string) bool { return times[runbook] > 1 })
	return found
}

// linesCommand returns the command that shows the log lines which the alarm counts: lines and counted are shell
// functions of the page. It is empty for an alarm that does not read a value of the functions' lines.
func (a Alarm) linesCommand() string {
	first := a.metrics[0]
	switch {
	case first.namespace != telemetry.Namespace:
		return ""
	case first.statistic == "Maximum":
		return fmt.Sprintf("lines %s '{ $.%s >= %d }'", first.dimensions[1].value, first.name, a.threshold)
	}
	command := "counted " + first.name
	for _, m := range a.metrics {
		command += " " + m.dimensions[1].value
	}
	return command
}

// Page returns the table of docs/operations.md.
func Page() string {
	var b strings.Builder
	b.WriteString("| Alarm | Goes off at | At the latest after | OK again after |\n|---|---|---|---|\n")
	written := map[string]bool{}
	for _, a := range All() {
		if written[a.Runbook] {
			continue
		}
		written[a.Runbook] = true
		ok, bounded := a.okAfter()
		after := span(ok)
		if !bounded {
			after = "the next point below, " + after
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s |\n", a.Runbook, strings.ToLower(a.Runbook), a.condition(),
			span(a.goesOffAfter()), after)
	}
	return b.String()
}
