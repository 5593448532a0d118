package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/telemetry"
)

var started = time.Date(2026, 11, 21, 10, 0, 0, 500_000_000, time.UTC)

// written is the line of an event, without its newline.
func written(t *testing.T, event *telemetry.Event) string {
	t.Helper()
	var out bytes.Buffer
	err := event.Write(&out)
	if err != nil {
		t.Fatal(err)
	}
	line, rest, ended := strings.Cut(out.String(), "\n")
	if !ended || rest != "" {
		t.Fatalf("not one line: %q", out.String())
	}
	return line
}

// fields decodes a line.
func fields(t *testing.T, event *telemetry.Event) map[string]any {
	t.Helper()
	var decoded map[string]any
	err := json.Unmarshal([]byte(written(t, event)), &decoded)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

func route(event *telemetry.Event, operator, country, channel string) {
	event.SetOperator(operator)
	event.SetCountry(country)
	event.SetChannel(channel)
}

func full() *telemetry.Event {
	event := telemetry.New("charge", started)
	event.SetStack("gateway-dev")
	event.SetRequestID("c6af9ac6-7b61-11e6-9a41-93e8deadbeef")
	event.SetMerchant("DemoShop")
	event.SetKey("DemoShop_1234567890")
	route(event, "orange", "CI", "ussd")
	event.SetOutcome("replay")
	event.SetErrorID("SVC0001")
	event.SetStatus(504)
	event.SetReplayed(true)
	event.SetCold(true)
	event.AddUpstream(1200 * time.Millisecond)
	event.AddUpstream(34 * time.Millisecond)
	event.SetOverdue(2500 * time.Millisecond)
	event.SetTotal(1300 * time.Millisecond)
	event.SetMSISDN("+2250701021001")
	event.SetCause(fault.In(fault.OutcomeUnknown, ""))
	for counter := telemetry.Counter(0); counter.String() != ""; counter++ {
		event.Count(counter)
	}
	return event
}

func TestGoldenLine(t *testing.T) {
	want := `{"_aws":{"Timestamp":1795255200500,"CloudWatchMetrics":[{"Namespace":"MobileGateway",` +
		`"Dimensions":[["Stack","Operation"],["Stack","Operation","Operator"]],"Metrics":[{"Name":"Requests","Unit":"Count"},` +
		`{"Name":"Errors","Unit":"Count"},{"Name":"Unknowns","Unit":"Count"},{"Name":"UpstreamMillis","Unit":"Milliseconds"},` +
		`{"Name":"TotalMillis","Unit":"Milliseconds"}]}]},"RequestID":"r-1","Stack":"gateway-dev","Operation":"pay","Merchant":"DemoShop",` +
		`"Key":"DemoShop_1","Operator":"mtn","Country":"CM","Channel":"tpe","MSISDN":"***********01","Outcome":"unknown",` +
		`"ErrorID":"SVC0001","Status":504,"Cause":"outcome unknown: read: timeout","Requests":1,"Errors":1,"Unknowns":1,` +
		`"UpstreamMillis":12000,"TotalMillis":12034}`
	event := telemetry.New("pay", started)
	event.SetStack("gateway-dev")
	event.SetRequestID("r-1")
	event.SetMerchant("DemoShop")
	event.SetKey("DemoShop_1")
	route(event, "mtn", "CM", "tpe")
	event.SetMSISDN("+237671001001")
	event.SetOutcome("unknown")
	event.SetErrorID("SVC0001")
	event.SetStatus(504)
	event.SetCause(&fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.New("read: timeout")})
	event.Count(telemetry.Unknowns)
	event.AddUpstream(12 * time.Second)
	event.SetTotal(12034*time.Millisecond + 900*time.Microsecond)
	if got := written(t, event); got != want {
		t.Errorf("line:\n%s\nwant:\n%s", got, want)
	}
}

// The Embedded Metric Format: each metric names a top-level number, each dimension a top-level text that is not empty.
func TestEveryLineIsValidEMF(t *testing.T) {
	withoutOperator := telemetry.New("token", started)
	withoutOperator.SetStack("gateway-dev")
	withoutOperator.SetStatus(200)
	events := map[string]*telemetry.Event{
		"full":              full(),
		"without operator":  withoutOperator,
		"without operation": telemetry.New("", started),
		"new":               telemetry.New("sweep", started),
	}
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			line := written(t, event)
			var head struct {
				AWS struct {
					Timestamp         int64       `json:"Timestamp"`
					CloudWatchMetrics []directive `json:"CloudWatchMetrics"`
				} `json:"_aws"`
			}
			err := json.Unmarshal([]byte(line), &head)
			if err != nil || head.AWS.Timestamp != started.UnixMilli() || len(head.AWS.CloudWatchMetrics) != 1 {
				t.Fatalf("line %s: %v", line, err)
			}
			checkDirective(t, fields(t, event), head.AWS.CloudWatchMetrics[0])
		})
	}
}

// directive is a metric directive as CloudWatch reads it.
type directive struct {
	Namespace  string     `json:"Namespace"`
	Dimensions [][]string `json:"Dimensions"`
	Metrics    []struct {
		Name string `json:"Name"`
		Unit string `json:"Unit"`
	} `json:"Metrics"`
}

func checkDirective(t *testing.T, decoded map[string]any, d directive) {
	t.Helper()
	if d.Namespace != telemetry.Namespace || d.Dimensions == nil {
		t.Errorf("directive %+v", d)
	}
	for _, dimension := range slices.Concat(d.Dimensions...) {
		if text, ok := decoded[dimension].(string); !ok || text == "" {
			t.Errorf("dimension %s has the value %v", dimension, decoded[dimension])
		}
	}
	var names []string
	for _, metric := range d.Metrics {
		names = append(names, metric.Name)
		if _, ok := decoded[metric.Name].(float64); !ok {
			t.Errorf("metric %s has the value %v", metric.Name, decoded[metric.Name])
		}
		if metric.Unit != "Count" && metric.Unit != "Milliseconds" {
			t.Errorf("metric %s has the unit %s", metric.Name, metric.Unit)
		}
	}
	for name, value := range decoded {
		if _, number := value.(float64); number && name != "Status" && !slices.Contains(names, name) {
			t.Errorf("%s is in the line but no metric", name)
		}
	}
}

func TestEveryCounterIsWrittenUnderItsName(t *testing.T) {
	for counter := telemetry.Counter(0); counter.String() != ""; counter++ {
		event := telemetry.New("pay", started)
		event.Add(counter, 3)
		if got := fields(t, event)[counter.String()]; got != float64(3) {
			t.Errorf("%v is written as %v", counter, got)
		}
	}
	event := telemetry.New("pay", started)
	before := written(t, event)
	event.Count(telemetry.Counter(-1))
	event.Count(telemetry.Counter(1000))
	if after := written(t, event); after != before {
		t.Errorf("a counter that is none changed the line: %s", after)
	}
}

func TestErrorsAreStatusesFrom500(t *testing.T) {
	for status, want := range map[int]float64{0: 0, 201: 0, 404: 0, 499: 0, 500: 1, 504: 1} {
		event := telemetry.New("pay", started)
		event.SetStatus(status)
		if got := fields(t, event)["Errors"]; got != want {
			t.Errorf("status %d counts %v errors", status, got)
		}
	}
}

func TestMeasuresStandOnlyWhereTheyWereMade(t *testing.T) {
	event := telemetry.New("sweep", started)
	if got := fields(t, event); got["UpstreamMillis"] != nil || got["OverdueMillis"] != nil {
		t.Errorf("measured nothing: %v", got)
	}
	event.AddUpstream(0)
	event.SetOverdue(-time.Second)
	if got := fields(t, event); got["UpstreamMillis"] != float64(0) || got["OverdueMillis"] != float64(0) {
		t.Errorf("measured zero: %v", got)
	}
	event.AddUpstream(1500 * time.Microsecond)
	event.AddUpstream(600 * time.Microsecond)
	event.SetOverdue(time.Minute)
	if got := fields(t, event); got["UpstreamMillis"] != float64(2) || got["OverdueMillis"] != float64(60000) {
		t.Errorf("measured: %v", got)
	}
}

func TestReplayedCountsOnce(t *testing.T) {
	event := telemetry.New("pay", started)
	event.SetReplayed(true)
	event.SetReplayed(true)
	if got := fields(t, event); got["Replays"] != float64(1) || got["Replayed"] != true {
		t.Errorf("Replays %v, Replayed %v", got["Replays"], got["Replayed"])
	}
	event.SetReplayed(false)
	if got := fields(t, event); got["Replays"] != nil || got["Replayed"] != nil {
		t.Errorf("Replays %v, Replayed %v", got["Replays"], got["Replayed"])
	}
}

func TestWriteIsOneCall(t *testing.T) {
	calls := 0
	err := full().Write(writerFunc(func(p []byte) (int, error) { calls++; return len(p), nil }))
	if err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	broken := errors.New("broken")
	err = full().Write(writerFunc(func([]byte) (int, error) { return 0, broken }))
	if !errors.Is(err, broken) {
		t.Errorf("a broken writer gives %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
