package alarms

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/telemetry"
	"mobilegateway/world/template"
	"mobilegateway/world/template/roles"
)

var root = filepath.Join("..", "..")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func loadTemplate(t *testing.T) *template.Template {
	t.Helper()
	found, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestGenerated compares the generated files with the table.
func TestGenerated(t *testing.T) {
	if read(t, "deploy/alarms.yaml") != Template() {
		t.Error("deploy/alarms.yaml differs from the table: run go generate ./deploy/alarms")
	}
	for name, want := range map[string]string{
		"template.yaml":      GatewayStart + GatewayAlarms() + GatewayEnd,
		"docs/operations.md": PageStart + Page() + PageEnd,
	} {
		if !strings.Contains(read(t, name), want) {
			t.Errorf("%s differs from the table: run go generate ./deploy/alarms", name)
		}
	}
	page := read(t, "docs/operations.md")
	for runbook, want := range Beginnings() {
		if start, end := BeginningMarks(runbook); !strings.Contains(page, "### "+runbook+"\n\n"+start+want+end) {
			t.Errorf("the section %s of docs/operations.md differs: run go generate ./deploy/alarms", runbook)
		}
	}
	for name, want := range map[string]int{"template.yaml": 4, "deploy/alarms.yaml": len(All()) - 4} {
		if got := strings.Count(read(t, name), "Type: AWS::CloudWatch::Alarm"); got != want {
			t.Errorf("%s has %d alarms, the table %d for it", name, got, want)
		}
	}
	if lines := strings.Count(Template(), "\n"); lines > 700 {
		t.Errorf("deploy/alarms.yaml has %d lines, want at most 700", lines)
	}
}

// TestForm checks what CloudWatch and CloudFormation accept, and what no reader of a definition sees.
func TestForm(t *testing.T) {
	names, written := map[string]bool{}, ownMetrics()
	var functions []string
	for _, f := range loadTemplate(t).Functions {
		functions = append(functions, f.Name)
	}
	for _, a := range All() {
		if names[a.Name] || !strings.HasSuffix(a.Name, "Alarm") || a.Runbook == "" || a.Description == "" {
			t.Errorf("%q must be a name of its own with a description and a runbook", a.Name)
		}
		names[a.Name] = true
		if len(a.metrics) == 0 || len(a.metrics) > MaxMetrics {
			t.Errorf("%s reads %d metrics, want 1 to %d", a.Name, len(a.metrics), MaxMetrics)
		}
		if a.points < 1 || a.points > a.periods || time.Duration(a.periods)*a.period > 24*time.Hour {
			t.Errorf("%s: %d of %d periods of %s, want at most a day", a.Name, a.points, a.periods, a.period)
		}
		if a.treatMissing() == breaching && a.missing != filled {
			t.Errorf("%s: silence is its signal, so its metrics must be filled", a.Name)
		}
		if a.missing == filled != strings.Contains(a.expression, "FILL(") && a.missing != ignored {
			t.Errorf("%s: %s does not fit %s", a.Name, a.expression, a.missing)
		}
		// The value of the last period may be a filled 0, which only an alarm of silence must find.
		if a.missing == filled && !a.below && (a.points >= a.periods ||
			time.Duration(a.periods)*a.period < 5*time.Minute) {
			t.Errorf("%s: %d of %d periods of %s may all be filled", a.Name, a.points, a.periods, a.period)
		}
		for _, m := range a.metrics {
			if dynamo := m.namespace == "AWS/DynamoDB"; dynamo != (a.missing == ignored) {
				t.Errorf("%s: only DynamoDB's metrics are ignored if missing, and always", a.Name)
			}
			if m.namespace == telemetry.Namespace && (!slices.Contains(written, m.name) ||
				!slices.Contains(functions, m.dimensions[1].value)) {
				t.Errorf("%s reads %s of %v, which the telemetry does not write", a.Name, m.name, m.dimensions)
			}
			if !regexp.MustCompile(`^[a-z][A-Za-z]*$`).MatchString(m.id) {
				t.Errorf("%s: %q is not an id", a.Name, m.id)
			}
		}
	}
}

// ownMetrics lists the names of the metrics in the functions' log lines.
func ownMetrics() []string {
	names := []string{"Requests", "Errors", "OperatorMillis", "ScheduleDelayMillis", "StalledMillis", "ParkedMillis",
		"DurationMillis"}
	for counter := telemetry.Counter(0); counter.String() != ""; counter++ {
		names = append(names, counter.String())
	}
	return names
}

// TestBounds checks the bounds of delays: 3 minutes for CloudWatch, and the periods.
func TestBounds(t *testing.T) {
	const minute = time.Minute
	for name, c := range map[string]struct {
		alarm     Alarm
		goes, ok  time.Duration
		unbounded bool
	}{
		"a filled count": {Alarm{period: 5 * minute, points: 1, periods: 2, missing: filled}, 8 * minute, 13 * minute,
			false},
		"filled silence": {Alarm{period: 5 * minute, below: true, points: 2, periods: 2, missing: filled},
			13 * minute, 8 * minute, false},
		"silence that CloudWatch looks back for": {Alarm{period: 5 * minute, below: true, points: 2, periods: 2,
			missing: breaching}, 23 * minute, 8 * minute, false},
		"a value that may be missing": {Alarm{period: minute, points: 3, periods: 5, missing: notBreaching},
			6 * minute, 8 * minute, false},
		"a table's": {Alarm{period: 5 * minute, points: 1, periods: 2, missing: ignored}, 8 * minute, 13 * minute,
			true},
	} {
		ok, bounded := c.alarm.okAfter()
		if goes := c.alarm.goesOffAfter(); goes != c.goes || ok != c.ok || bounded == c.unbounded {
			t.Errorf("%s: off after %s, OK after %s (bounded: %v), want %s and %s", name, goes, ok, bounded, c.goes,
				c.ok)
		}
	}
	for _, a := range All() {
		if bound := a.goesOffAfter(); bound > 20*minute && a.period < time.Hour || bound > 65*minute {
			t.Errorf("%s goes off after %s: too late for a person", a.Name, bound)
		}
	}
}

// TestMetricsWithoutAlarm lists the metrics that raise no alarm. Each other one is a reason to act.
func TestMetricsWithoutAlarm(t *testing.T) {
	want := []string{
		"RepeatedRequests", "MismatchedRepeats", "UnknownOutcomes", "NotAppliedCalls", "OperatorRefusals",
		"DeliveryAttemptFailures", "RateLimitedRequests", "DailyLimitRefusals", "UnmappedCodes", "RateLimitedLookups",
		"ClosedCircuits", "CircuitRefusals", "OperatorMillis", "DurationMillis",
	}
	var got []string
	for _, name := range ownMetrics() {
		if len(functionsOf(name)) == 0 {
			got = append(got, name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("no alarm reads %v, want %v", got, want)
	}
}

// functionsOf returns the functions of whose metric an alarm knows, sorted.
func functionsOf(name string) []string {
	var found []string
	for _, a := range All() {
		for _, m := range a.metrics {
			if m.name == name && m.namespace == telemetry.Namespace {
				found = append(found, m.dimensions[1].value)
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestWatchedFunctions checks that alarms read the metrics of each function that counts there. An operator's response
// may contradict its callback, so the operations count conflicts too. Each function with a route counts internal errors
// and stale key rings, each one that updates the table of limits its failures.
func TestWatchedFunctions(t *testing.T) {
	loaded := loadTemplate(t)
	deployed, err := roles.Load(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var withRoute, counting, all []string
	for _, f := range loaded.Functions {
		all = append(all, f.Name)
		if slices.ContainsFunc(loaded.Routes, func(r template.Route) bool { return r.Function == f.LogicalID }) {
			withRoute = append(withRoute, f.Name)
		}
		role := deployed.Role(strings.TrimSuffix(f.LogicalID, "Function") + "Role")
		if role != nil && slices.ContainsFunc(role.Statements, func(s roles.Statement) bool {
			return slices.Contains(s.Actions, "dynamodb:UpdateItem") && slices.Contains(s.Resources, "LimitTable")
		}) {
			counting = append(counting, f.Name)
		}
	}
	slices.Sort(withRoute)
	slices.Sort(counting)
	for counter, want := range map[telemetry.Counter][]string{
		telemetry.StatusConflicts: {"charge", "notif", "pay", "sms", "sweep"},
		telemetry.UnreadCallbacks: {"notif", "receipt", "sms"},
		telemetry.InternalErrors:  withRoute, telemetry.StaleKeyRings: withRoute,
		telemetry.LimitStoreFailures: counting,
	} {
		if got := functionsOf(counter.String()); !slices.Equal(got, want) {
			t.Errorf("%s is watched for %v, want %v", counter, got, want)
		}
	}
	for _, name := range []string{"Errors", "Throttles"} {
		watched := map[string]bool{}
		for _, a := range All() {
			for _, m := range a.metrics {
				if m.namespace == "AWS/Lambda" && m.name == name {
					watched[m.dimensions[0].value] = true
				}
			}
		}
		if len(watched) != len(all) {
			t.Errorf("the %s of %d functions are watched, want all %d", name, len(watched), len(all))
		}
	}
}

// TestWatchedTables checks that TableThrottlesAlarm reads each table and index for each action that a function may do
// there.
func TestWatchedTables(t *testing.T) {
	metricOf := map[string]string{
		"dynamodb:GetItem": "ReadThrottleEvents", "dynamodb:Query": "ReadThrottleEvents",
		"dynamodb:PutItem": "WriteThrottleEvents", "dynamodb:UpdateItem": "WriteThrottleEvents",
	}
	covered := map[string]bool{}
	for _, m := range throttledTables() {
		place := strings.TrimPrefix(m.dimensions[0].value, "!Ref ")
		if len(m.dimensions) > 1 {
			place += "/index/" + m.dimensions[1].value
		}
		covered[m.name+" "+place] = true
	}
	deployed, err := roles.Load(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range deployed.Roles {
		for _, statement := range role.Statements {
			for _, action := range statement.Actions {
				for _, place := range statement.Resources {
					if name := metricOf[action]; name != "" && !covered[name+" "+place] {
						t.Errorf("no alarm watches %s of %s, where %s does %s", name, place, role.LogicalID, action)
					}
				}
			}
		}
	}
}

// TestBeginnings checks what the sections of docs/operations.md begin with, by the kinds of alarms.
func TestBeginnings(t *testing.T) {
	found := Beginnings()
	for runbook, want := range map[string]string{
		"DeadLettersAlarm": "counted DeadLetters relay sweep",
		"StalledWorkAlarm": "lines sweep '{ $.StalledMillis >= 1800000 }'",
		"StreamLagAlarm":   "", // a metric of Lambda
		"RelaySilentAlarm": "", // no run writes no line
	} {
		_, command, _ := strings.Cut(found[runbook], "```sh\n")
		if command, _, _ = strings.Cut(command, "\n```"); command != want {
			t.Errorf("%s begins with the command %q, want %q", runbook, command, want)
		}
	}
	if text, exists := found["SuccessAlarm"]; exists {
		t.Errorf("the section of many alarms begins with one of them: %s", text)
	}
}

// TestRunbooks compares the alarms with the headings of docs/operations.md.
func TestRunbooks(t *testing.T) {
	missing := map[string]bool{}
	for _, a := range All() {
		missing[a.Runbook] = true
	}
	for line := range strings.Lines(read(t, "docs/operations.md")) {
		name, found := strings.CutPrefix(strings.TrimSpace(line), "### ")
		if !found || !strings.HasSuffix(name, "Alarm") {
			continue
		}
		if !missing[name] {
			t.Errorf("docs/operations.md explains %s, which is not an alarm, or twice", name)
		}
		delete(missing, name)
	}
	for name := range missing {
		t.Errorf("docs/operations.md does not explain %s", name)
	}
}
