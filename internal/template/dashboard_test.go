package template_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"mobilegateway/shared/telemetry"
)

// ownNamespaces are the metrics that the functions' log lines make, by name.
func ownNamespaces() []string {
	names := []string{"Requests", "Errors", "OperatorMillis", "ScheduleDelayMillis", "DurationMillis"}
	for counter := telemetry.Counter(0); counter.String() != ""; counter++ {
		names = append(names, counter.String())
	}
	return names
}

// readDashboard is the body of the template's dashboard, with a word in the place of each reference.
func readDashboard(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var deployed struct {
		Resources struct {
			Dashboard struct {
				Properties struct {
					DashboardBody yaml.Node `yaml:"DashboardBody"`
				} `yaml:"Properties"`
			} `yaml:"Dashboard"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &deployed); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\$\{[A-Za-z:]+\}`).ReplaceAll([]byte(deployed.Resources.Dashboard.Properties.DashboardBody.Value), []byte("x"))
}

func TestDashboardMetricsExist(t *testing.T) {
	var body struct {
		Widgets []struct {
			Type       string
			X, Y       int
			Width      int
			Properties struct {
				Title   string
				Metrics [][]any
			}
		}
	}
	if err := json.Unmarshal(readDashboard(t), &body); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, widget := range body.Widgets {
		if widget.Type != "metric" || widget.X+widget.Width > 24 || widget.Properties.Title == "" {
			t.Errorf("widget %+v", widget)
		}
		for _, metric := range widget.Properties.Metrics {
			for _, name := range metricNames(metric) {
				shown[name] = true
				if !slices.Contains(ownNamespaces(), name) {
					t.Errorf("%s: there is no metric %s", widget.Properties.Title, name)
				}
			}
		}
	}
	for _, name := range ownNamespaces() {
		if !shown[name] && name != "DurationMillis" { // the API's own latency stands for it
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// quoted is a name within a search.
var quoted = regexp.MustCompile(`"([A-Za-z]+)"`)

// cutSearch takes off a search its head: the two sets of dimensions, and this stack alone.
func cutSearch(expression string) (search string, found bool) {
	for _, dimensions := range []string{"Stack,Operation", "Stack,Operation,Operator"} {
		if search, found = strings.CutPrefix(expression, "SEARCH('{MobileGateway,"+dimensions+`} Stack="x" `); found {
			return search, true
		}
	}
	return "", false
}

// metricNames gives the metrics of ours in one entry of a widget: by name, or by a search for names.
func metricNames(metric []any) []string {
	if search, isSearch := metric[0].(map[string]any); isSearch {
		expression, _ := search["expression"].(string)
		search, found := cutSearch(expression)
		if !found {
			return nil
		}
		var names []string
		for _, match := range quoted.FindAllStringSubmatch(search, -1) {
			names = append(names, match[1])
		}
		return names
	}
	if metric[0] == "MobileGateway" && len(metric) > 1 {
		name, _ := metric[1].(string)
		return []string{name}
	}
	return nil
}
