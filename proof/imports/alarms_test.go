package imports

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"mobilegateway/shared/telemetry"
	"mobilegateway/world/template"
	"mobilegateway/world/template/roles"
)

// alarmMetric is one metric that an alarm of template.yaml watches.
type alarmMetric struct {
	Alarm, Namespace, Name string
	Dimensions             map[string]string
}

// nonCounterMetrics are the metrics of a log line that are not counters.
var nonCounterMetrics = []string{"Requests", "Errors", "OperatorMillis", "ScheduleDelayMillis",
	"StalledMillis", "DurationMillis"}

// metricsRequiringAlarm are the metrics that a person must act on: each has an alarm.
var metricsRequiringAlarm = []string{
	telemetry.DeadLetters.String(), telemetry.StatusConflicts.String(), telemetry.StaleUnknownOutcomes.String(),
	telemetry.LookupFailures.String(), telemetry.OperatorAuthFailures.String(), telemetry.UserSMSFailures.String(),
	telemetry.EndpointsDisabled.String(), telemetry.InternalErrors.String(),
	"ScheduleDelayMillis", "StalledMillis", telemetry.UndecodableEntries.String(),
	telemetry.StaleKeyRings.String(), telemetry.UnreadCallbacks.String(), telemetry.ExhaustedAccounts.String(),
}

// TestAlarmMetricsAreEmitted compares the metrics of the alarms with those that the telemetry writes: an alarm on
// another metric never fires. The dimension Operation is the name of a function.
func TestAlarmMetricsAreEmitted(t *testing.T) {
	written := slices.Clone(nonCounterMetrics)
	for counter := telemetry.Counter(0); counter.String() != ""; counter++ {
		written = append(written, counter.String())
	}
	var functions []string
	for _, f := range loadTemplate(t).Functions {
		functions = append(functions, f.Name)
	}
	seen := map[string]bool{}
	for _, w := range alarmMetrics(t) {
		if strings.HasPrefix(w.Namespace, "AWS/") {
			continue
		}
		seen[w.Name] = true
		if w.Namespace != telemetry.Namespace || !slices.Contains(written, w.Name) {
			t.Errorf("%s watches %s %s, which the telemetry does not write", w.Alarm, w.Namespace, w.Name)
		}
		operation := w.Dimensions["Operation"]
		stack := w.Dimensions["Stack"]
		if len(w.Dimensions) != 2 || stack != "AWS::StackName" || !slices.Contains(functions, operation) {
			t.Errorf("%s watches %s by %v: a metric has the dimensions Stack and Operation, the name of a function",
				w.Alarm, w.Name, w.Dimensions)
		}
	}
	for _, name := range metricsRequiringAlarm {
		if !seen[name] {
			t.Errorf("no alarm watches %s", name)
		}
	}
}

// TestConflictAlarmCoversAllFunctions requires that the alarm of conflicts watches each function that counts one: the
// operations, because the response of an operator may contradict its callback, and the receivers of callbacks. The
// alarm of unread callbacks watches the receivers, and sms: it counts one if it cannot store the id of a message.
func TestConflictAlarmCoversAllFunctions(t *testing.T) {
	counting := []string{"charge", "notif", "pay", "sms", "sweep"}
	compareLists(t, "watched for conflicts", operations(t, telemetry.StatusConflicts), counting)
	compareLists(t, "watched for unread callbacks", operations(t, telemetry.UnreadCallbacks),
		[]string{"notif", "receipt", "sms"})
}

// TestInternalErrorAlarmCoversAllFunctions requires that the alarms of internal errors and of stale key rings watch
// each function with a route.
func TestInternalErrorAlarmCoversAllFunctions(t *testing.T) {
	found := loadTemplate(t)
	var routed []string
	for _, f := range found.Functions {
		if slices.ContainsFunc(found.Routes, func(r template.Route) bool { return r.Function == f.LogicalID }) {
			routed = append(routed, f.Name)
		}
	}
	compareLists(t, "watched for internal errors", operations(t, telemetry.InternalErrors), routed)
	compareLists(t, "watched for stale key rings", operations(t, telemetry.StaleKeyRings), routed)
}

// operations returns the functions whose counter an alarm watches.
func operations(t *testing.T, counter telemetry.Counter) []string {
	t.Helper()
	var found []string
	for _, w := range alarmMetrics(t) {
		if w.Name == counter.String() {
			found = append(found, w.Dimensions["Operation"])
		}
	}
	return found
}

// throttleMetrics are the metrics of a table that throttles an action.
var throttleMetrics = map[string]string{
	"dynamodb:GetItem": "ReadThrottleEvents", "dynamodb:Query": "ReadThrottleEvents",
	"dynamodb:PutItem": "WriteThrottleEvents", "dynamodb:UpdateItem": "WriteThrottleEvents",
}

// TestThrottleAlarmCoversAllTables requires that the alarm of throttles watches each table and index for each action
// that a function may do there.
func TestThrottleAlarmCoversAllTables(t *testing.T) {
	covered := map[string]bool{}
	for _, w := range alarmMetrics(t) {
		place := w.Dimensions["TableName"]
		if index := w.Dimensions["GlobalSecondaryIndexName"]; index != "" {
			place += "/index/" + index
		}
		covered[w.Name+" "+place] = true
	}
	deployed, err := roles.Load(filepath.Join(loadTree(t).Root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range deployed.Roles {
		for _, statement := range role.Statements {
			for _, action := range statement.Actions {
				for _, place := range statement.Resources {
					if name := throttleMetrics[action]; name != "" && !covered[name+" "+place] {
						t.Errorf("no alarm watches %s of %s, where %s does %s", name, place, role.LogicalID, action)
					}
				}
			}
		}
	}
}

// TestAlarmsAreDocumented compares the alarms with the headings of docs/operations.md.
func TestAlarmsAreDocumented(t *testing.T) {
	inTemplate := map[string]bool{}
	for _, w := range alarmMetrics(t) {
		inTemplate[w.Alarm] = true
	}
	var explained []string
	for line := range strings.Lines(readTreeFile(t, "docs/operations.md")) {
		name, found := strings.CutPrefix(strings.TrimSpace(line), "### ")
		if found && strings.HasSuffix(name, "Alarm") {
			explained = append(explained, name)
			if !inTemplate[name] {
				t.Errorf("docs/operations.md explains %s, which template.yaml does not have", name)
			}
		}
	}
	for name := range inTemplate {
		if !slices.Contains(explained, name) {
			t.Errorf("docs/operations.md does not explain %s", name)
		}
	}
}

// TestFilledAlarmsCoverSeveralPeriods requires that an alarm which fills missing values evaluates more than the last
// period, and at least five minutes. Metrics from log lines arrive late, so the value of the last period is often a
// filled 0.
func TestFilledAlarmsCoverSeveralPeriods(t *testing.T) {
	filled := 0
	for name, properties := range alarmProperties(t) {
		var alarm struct {
			EvaluationPeriods int `yaml:"EvaluationPeriods"`
			DatapointsToAlarm int `yaml:"DatapointsToAlarm"`
			Metrics           []struct {
				Expression string `yaml:"Expression"`
				MetricStat struct {
					Period int `yaml:"Period"`
				} `yaml:"MetricStat"`
			} `yaml:"Metrics"`
		}
		if err := properties.Decode(&alarm); err != nil {
			t.Fatal(err)
		}
		if len(alarm.Metrics) == 0 || !strings.Contains(alarm.Metrics[0].Expression, "FILL(") {
			continue
		}
		filled++
		back := alarm.EvaluationPeriods * alarm.Metrics[1].MetricStat.Period
		if alarm.DatapointsToAlarm < 1 || alarm.DatapointsToAlarm >= alarm.EvaluationPeriods || back < 300 {
			t.Errorf("%s: %d of %d periods, %d s: the value of the last period may be a filled 0",
				name, alarm.DatapointsToAlarm, alarm.EvaluationPeriods, back)
		}
	}
	if filled == 0 {
		t.Error("no alarm fills missing values: update this test if their expression has changed")
	}
}

// alarmMetrics returns each metric of each alarm, those inside metric math included.
func alarmMetrics(t *testing.T) []alarmMetric {
	t.Helper()
	var found []alarmMetric
	for name, properties := range alarmProperties(t) {
		found = append(found, findAlarmMetrics(name, properties)...)
	}
	if len(found) == 0 {
		t.Fatal("template.yaml has no alarm")
	}
	return found
}

// alarmProperties returns the properties of each alarm of template.yaml, by its logical id.
func alarmProperties(t *testing.T) map[string]*yaml.Node {
	t.Helper()
	var document struct {
		Resources map[string]struct {
			Type       string    `yaml:"Type"`
			Properties yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(readTreeFile(t, "template.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]*yaml.Node{}
	for name, resource := range document.Resources {
		if resource.Type == "AWS::CloudWatch::Alarm" {
			found[name] = &resource.Properties
		}
	}
	return found
}

// findAlarmMetrics returns each mapping with a MetricName below a node.
func findAlarmMetrics(alarm string, n *yaml.Node) []alarmMetric {
	var metric struct {
		Namespace  string              `yaml:"Namespace"`
		Name       string              `yaml:"MetricName"`
		Dimensions []map[string]string `yaml:"Dimensions"`
	}
	if n.Kind == yaml.MappingNode && n.Decode(&metric) == nil && metric.Name != "" {
		found := alarmMetric{alarm, metric.Namespace, metric.Name, map[string]string{}}
		for _, dimension := range metric.Dimensions {
			found.Dimensions[dimension["Name"]] = dimension["Value"]
		}
		return []alarmMetric{found}
	}
	var found []alarmMetric
	for _, inner := range n.Content {
		found = append(found, findAlarmMetrics(alarm, inner)...)
	}
	return found
}
