package alarms

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readDashboard returns the body of the dashboard, with x in place of each reference.
func readDashboard(t *testing.T) []byte {
	t.Helper()
	_, body, found := strings.Cut(Template(), "DashboardBody: !Sub |\n")
	body, _, ended := strings.Cut(body, "\n\n")
	if !found || !ended {
		t.Fatal("deploy/alarms.yaml has no dashboard")
	}
	return regexp.MustCompile(`\$\{[A-Za-z:]+\}`).ReplaceAll([]byte(body), []byte("x"))
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
	onDashboard := map[string]bool{}
	for _, widget := range body.Widgets {
		if widget.Type != "metric" || widget.X+widget.Width > 24 || widget.Properties.Title == "" {
			t.Errorf("widget %q of type %q must be a titled metric widget within 24 columns",
				widget.Properties.Title, widget.Type)
		}
		for _, metric := range widget.Properties.Metrics {
			for _, name := range metricNames(metric) {
				onDashboard[name] = true
				if !slices.Contains(ownMetrics(), name) {
					t.Errorf("%s: there is no metric %s", widget.Properties.Title, name)
				}
			}
		}
	}
	for _, name := range ownMetrics() {
		if !onDashboard[name] && name != "DurationMillis" { // the dashboard shows the API's latency instead
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// quoted is a quoted name in a search.
var quoted = regexp.MustCompile(`"([A-Za-z]+)"`)

// cutSearch removes the head of a search, which selects a set of dimensions and this stack.
func cutSearch(expression string) (search string, found bool) {
	for _, dimensions := range []string{"Stack,Operation", "Stack,Operation,Operator"} {
		if search, found = strings.CutPrefix(expression, "SEARCH('{MobileGateway,"+dimensions+`} Stack="x" `); found {
			return search, true
		}
	}
	return "", false
}

// metricNames lists our metrics in one entry of a widget, which has a name or a search for names.
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
