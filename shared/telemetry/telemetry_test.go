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
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/telemetry"
)

var started = time.Date(2026, 11, 21, 10, 0, 0, 500_000_000, time.UTC)

// encodeLine returns the written line, without its newline.
func encodeLine(t *testing.T, event *telemetry.LogLine) string {
	t.Helper()
	var out bytes.Buffer
	if err := event.Write(&out); err != nil {
		t.Fatal(err)
	}
	line, rest, ended := strings.Cut(out.String(), "\n")
	if !ended || rest != "" {
		t.Fatalf("not one line: %q", out.String())
	}
	return line
}

func decodeLine(t *testing.T, event *telemetry.LogLine) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := json.Unmarshal([]byte(encodeLine(t, event)), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func setRouting(event *telemetry.LogLine, operator, country, channel string) {
	event.SetRouting(operator, country, channel)
}

func newFullLine() *telemetry.LogLine {
	event := telemetry.NewLogLine("charge", started)
	event.SetStackName("gateway-dev")
	event.SetRequestID("c6af9ac6-7b61-11e6-9a41-93e8deadbeef")
	event.SetMerchant("DemoShop")
	event.SetTransactionKey("DemoShop_1234567890")
	setRouting(event, "orange", "CI", "ussd")
	event.SetOutcome("replay")
	event.SetErrorID("SVC0001")
	event.SetStatus(504)
	event.SetRepeated(true)
	event.SetColdStart(true)
	event.AddOperatorTime(1200 * time.Millisecond)
	event.AddOperatorTime(34 * time.Millisecond)
	event.SetScheduleDelay(2500 * time.Millisecond)
	event.SetDuration(1300 * time.Millisecond)
	event.SetMSISDN("+2250701021001")
	event.SetCause(fault.ForPart(fault.OutcomeUnknown, ""))
	for counter := telemetry.Counter(0); counter.String() != ""; counter++ {
		event.Increment(counter)
	}
	return event
}

func TestGoldenLine(t *testing.T) {
	want := `{"_aws":{"Timestamp":1795255200500,"CloudWatchMetrics":[{"Namespace":"MobileGateway",` +
		`"Dimensions":[["Stack","Operation"],["Stack","Operation","Operator"]],` +
		`"Metrics":[{"Name":"Requests","Unit":"Count"},{"Name":"Errors","Unit":"Count"},` +
		`{"Name":"UnknownOutcomes","Unit":"Count"},{"Name":"OperatorMillis","Unit":"Milliseconds"},` +
		`{"Name":"DurationMillis","Unit":"Milliseconds"}]}]},"RequestID":"r-1","Stack":"gateway-dev",` +
		`"Operation":"pay","Merchant":"DemoShop","TransactionKey":"DemoShop_1","Operator":"mtn","Country":"CM",` +
		`"Channel":"tpe","MSISDN":"***********01","Outcome":"unknown","ErrorID":"SVC0001","Status":504,` +
		`"Cause":"outcome unknown: read: timeout","Requests":1,"Errors":1,"UnknownOutcomes":1,` +
		`"OperatorMillis":12000,"DurationMillis":12034}`
	event := telemetry.NewLogLine("pay", started)
	event.SetStackName("gateway-dev")
	event.SetRequestID("r-1")
	event.SetMerchant("DemoShop")
	event.SetTransactionKey("DemoShop_1")
	setRouting(event, "mtn", "CM", "tpe")
	event.SetMSISDN("+237671001001")
	event.SetOutcome("unknown")
	event.SetErrorID("SVC0001")
	event.SetStatus(504)
	event.SetCause(&fault.Fault{Kind: fault.OutcomeUnknown, Cause: logsafe.New("read: timeout")})
	event.Increment(telemetry.UnknownOutcomes)
	event.AddOperatorTime(12 * time.Second)
	event.SetDuration(12034*time.Millisecond + 900*time.Microsecond)
	if got := encodeLine(t, event); got != want {
		t.Errorf("line:\n%s\nwant:\n%s", got, want)
	}
}

// The Embedded Metric Format: each metric names a top-level number, each dimension a top-level text that is not empty.
func TestEveryLineIsValidEMF(t *testing.T) {
	withoutOperator := telemetry.NewLogLine("token", started)
	withoutOperator.SetStackName("gateway-dev")
	withoutOperator.SetStatus(200)
	events := map[string]*telemetry.LogLine{
		"full":              newFullLine(),
		"without operator":  withoutOperator,
		"without operation": telemetry.NewLogLine("", started),
		"new":               telemetry.NewLogLine("sweep", started),
	}
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			line := encodeLine(t, event)
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
			checkDirective(t, decodeLine(t, event), head.AWS.CloudWatchMetrics[0])
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
		t.Errorf("namespace %q, dimensions %v", d.Namespace, d.Dimensions)
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
			t.Errorf("the number %s is in the line but is not declared as a metric", name)
		}
	}
}

func TestEveryCounterIsWrittenUnderItsName(t *testing.T) {
	for counter := telemetry.Counter(0); counter <= telemetry.InternalErrors; counter++ {
		if counter.String() == "" {
			t.Errorf("counter %d has no name", counter)
		}
		event := telemetry.NewLogLine("pay", started)
		event.Add(counter, 3)
		if got := decodeLine(t, event)[counter.String()]; got != float64(3) {
			t.Errorf("%v is written as %v", counter, got)
		}
	}
	event := telemetry.NewLogLine("pay", started)
	before := encodeLine(t, event)
	event.Increment(telemetry.Counter(-1))
	event.Increment(telemetry.Counter(1000))
	if after := encodeLine(t, event); after != before {
		t.Errorf("an invalid counter changed the line: %s", after)
	}
}

func TestStatusFrom500CountsAsError(t *testing.T) {
	for status, want := range map[int]float64{0: 0, 201: 0, 404: 0, 499: 0, 500: 1, 504: 1} {
		event := telemetry.NewLogLine("pay", started)
		event.SetStatus(status)
		if got := decodeLine(t, event)["Errors"]; got != want {
			t.Errorf("status %d counts %v errors", status, got)
		}
	}
}

func TestUnmeasuredMetricsAreOmitted(t *testing.T) {
	event := telemetry.NewLogLine("sweep", started)
	if got := decodeLine(t, event); got["OperatorMillis"] != nil || got["ScheduleDelayMillis"] != nil {
		t.Errorf("a metric that was not measured is in the line: %v", got)
	}
	event.AddOperatorTime(0)
	event.SetScheduleDelay(-time.Second)
	if got := decodeLine(t, event); got["OperatorMillis"] != float64(0) || got["ScheduleDelayMillis"] != float64(0) {
		t.Errorf("a measured zero is not in the line: %v", got)
	}
	event.AddOperatorTime(1500 * time.Microsecond)
	event.AddOperatorTime(600 * time.Microsecond)
	event.SetScheduleDelay(time.Minute)
	got := decodeLine(t, event)
	if millis := got["OperatorMillis"]; millis != float64(2) {
		t.Errorf("OperatorMillis is %v, want the sum 2", millis)
	}
	if millis := got["ScheduleDelayMillis"]; millis != float64(60000) {
		t.Errorf("ScheduleDelayMillis is %v, want 60000", millis)
	}
}

func TestSetRepeatedCountsOnce(t *testing.T) {
	event := telemetry.NewLogLine("pay", started)
	event.SetRepeated(true)
	event.SetRepeated(true)
	if got := decodeLine(t, event); got["RepeatedRequests"] != float64(1) || got["Repeated"] != true {
		t.Errorf("RepeatedRequests %v, Repeated %v", got["RepeatedRequests"], got["Repeated"])
	}
	event.SetRepeated(false)
	if got := decodeLine(t, event); got["RepeatedRequests"] != nil || got["Repeated"] != nil {
		t.Errorf("RepeatedRequests %v, Repeated %v", got["RepeatedRequests"], got["Repeated"])
	}
}

func TestWriteIsOneCall(t *testing.T) {
	calls := 0
	err := newFullLine().Write(writerFunc(func(p []byte) (int, error) { calls++; return len(p), nil }))
	if err != nil || calls != 1 {
		t.Errorf("%d calls of the writer (%v), want 1", calls, err)
	}
	broken := errors.New("broken")
	err = newFullLine().Write(writerFunc(func([]byte) (int, error) { return 0, broken }))
	if !errors.Is(err, broken) {
		t.Errorf("Write to a broken writer: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
