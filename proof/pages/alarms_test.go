package pages

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// alarm has the properties that the page describes. Threshold counts events, milliseconds or parts of a hundred.
type alarm struct {
	Threshold         int `yaml:"Threshold"`
	EvaluationPeriods int `yaml:"EvaluationPeriods"`
	DatapointsToAlarm int `yaml:"DatapointsToAlarm"`
	Period            int `yaml:"Period"` // of an alarm on one metric
	Metrics           []struct {
		Stat struct {
			Period int `yaml:"Period"`
		} `yaml:"MetricStat"`
	} `yaml:"Metrics"`
}

// deployedAlarms returns the alarms of template.yaml by their names.
func deployedAlarms(t *testing.T) map[string]alarm {
	t.Helper()
	var root struct {
		Resources map[string]struct {
			Type       string    `yaml:"Type"`
			Properties yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "template.yaml")), &root); err != nil {
		t.Fatal(err)
	}
	alarms := map[string]alarm{}
	for name, resource := range root.Resources {
		if resource.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		var a alarm
		if err := resource.Properties.Decode(&a); err != nil {
			t.Fatal(err)
		}
		for _, metric := range a.Metrics {
			a.Period = max(a.Period, metric.Stat.Period)
		}
		alarms[name] = a
	}
	return alarms
}

// numbersInWords are the numbers that the page writes as words.
var numbersInWords = map[int]string{1: "one", 2: "two", 3: "three", 5: "five", 10: "ten"}

// spanOf writes seconds as the page does, and as the span of a count.
func spanOf(seconds int) (duration, ofCount string) {
	switch {
	case seconds == 60:
		return "a minute", "one minute"
	case seconds == 3600:
		return "an hour", "an hour"
	case seconds%3600 == 0:
		duration = fmt.Sprintf("%d hours", seconds/3600)
	default:
		duration = fmt.Sprintf("%d minutes", seconds/60)
	}
	return duration, duration
}

// otherAlarms are the alarms that do not count events of one period: when each goes off.
var otherAlarms = map[string]func(alarm) string{
	"OverdueAlarm": func(a alarm) string {
		return fmt.Sprintf("%s minutes late, in %s periods of %d minutes", numbersInWords[a.Threshold/60_000],
			numbersInWords[a.EvaluationPeriods], a.Period/60)
	},
	"StalledWorkAlarm": func(a alarm) string {
		return fmt.Sprintf("something cannot be sent for %d minutes", a.Threshold/60_000)
	},
	"SweepSilentAlarm": func(a alarm) string {
		return fmt.Sprintf("no run in %d minutes", a.EvaluationPeriods*a.Period/60)
	},
	"StreamLagAlarm": func(a alarm) string {
		return fmt.Sprintf("%d seconds behind, in %s of %s minutes", a.Threshold/1000,
			numbersInWords[a.DatapointsToAlarm], numbersInWords[a.EvaluationPeriods])
	},
	"ApiErrorsAlarm": func(a alarm) string {
		return fmt.Sprintf("%d %% of at least ten responses are 5xx, in %s of %s periods of %d minutes", a.Threshold,
			numbersInWords[a.DatapointsToAlarm], numbersInWords[a.EvaluationPeriods], a.Period/60)
	},
}

// TestThresholdsAreDocumented compares when an alarm goes off, and when one that counts events is OK again, with the
// alarms of template.yaml.
func TestThresholdsAreDocumented(t *testing.T) {
	alarms := deployedAlarms(t)
	for _, row := range tableRows(t, operationsPage, "When does each alarm go off?")[1:] {
		a, found := alarms[row[0]]
		delete(alarms, row[0])
		if !found {
			t.Errorf("%s has a row of %s, which template.yaml lacks", operationsPage, row[0])
			continue
		}
		if special := otherAlarms[row[0]]; special != nil {
			if want := special(a); row[1] != want {
				t.Errorf("%s goes off at %q, the page says %q", row[0], want, row[1])
			}
			continue
		}
		_, span := spanOf(a.Period)
		first, _, _ := strings.Cut(row[1], " ")
		if first != numbersInWords[a.Threshold] || !strings.HasSuffix(row[1], " in "+span) {
			t.Errorf("%s goes off at %s in %s, the page says %q", row[0], numbersInWords[a.Threshold], span, row[1])
		}
		after, _ := spanOf(a.EvaluationPeriods * a.Period)
		if a.EvaluationPeriods > 1 && !strings.HasPrefix(row[2], after+" after the last") {
			t.Errorf("%s is OK %s after the last, the page says %q", row[0], after, row[2])
		}
	}
	if len(alarms) > 0 {
		t.Errorf("%s has no row of %v", operationsPage, slices.Sorted(maps.Keys(alarms)))
	}
}
