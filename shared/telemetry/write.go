package telemetry

import (
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// Namespace is the CloudWatch namespace of all metrics.
const Namespace = "MobileGateway"

// The units of metrics.
const (
	unitCount  = "Count"
	unitMillis = "Milliseconds"
)

// metricSet collects metrics for the directive, and their values as the top-level fields of the document.
type metricSet struct {
	metrics []metric
	values  []byte // JSON members, a comma before each
}

func (m *metricSet) add(name, unit string, value int64) {
	m.metrics = append(m.metrics, metric{name, unit})
	m.values = append(append(append(m.values, `,"`...), name...), `":`...)
	m.values = strconv.AppendInt(m.values, value, 10)
}

// Finish sets the duration from the start of the line to now and writes the line. It drops a line that cannot be
// written, because the work is done.
func (l *LogLine) Finish(now time.Time, w io.Writer) {
	l.SetDuration(now.Sub(l.started))
	_ = l.Write(w)
}

// Write writes the line with its newline in one call of w, so that lines of parallel requests do not mix. Every line
// counts one of Requests, and from status 500 on one of Errors. Other counters appear unless they are zero.
// OperatorMillis, ScheduleDelayMillis, StalledMillis and ParkedMillis appear if they were set.
func (l *LogLine) Write(w io.Writer) error {
	metrics := l.collectMetrics()
	document := l.fields
	document.AWS = metadata{
		Timestamp: l.started.UnixMilli(),
		CloudWatchMetrics: []directive{
			{Namespace: Namespace, Dimensions: l.dimensions(), Metrics: metrics.metrics},
		},
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return err
	}
	encoded = append(encoded[:len(encoded)-1], metrics.values...) // the metrics go before the closing brace
	_, err = w.Write(append(encoded, '}', '\n'))
	return err
}

// collectMetrics collects exactly the metrics of this line, in their order in the document.
func (l *LogLine) collectMetrics() metricSet {
	m := metricSet{metrics: make([]metric, 0, 8), values: make([]byte, 0, 256)} // enough for most lines
	m.add("Requests", unitCount, 1)
	failed := int64(0)
	if l.fields.Status >= 500 {
		failed = 1
	}
	m.add("Errors", unitCount, failed)
	for counter, count := range l.counters {
		if count != 0 {
			m.add(Counter(counter).String(), unitCount, int64(count))
		}
	}
	if l.operatorCalled {
		m.add("OperatorMillis", unitMillis, l.operatorTime.Milliseconds())
	}
	if l.delayMeasured {
		m.add("ScheduleDelayMillis", unitMillis, l.scheduleDelay.Milliseconds())
	}
	if l.stalledAge > 0 {
		m.add("StalledMillis", unitMillis, l.stalledAge.Milliseconds())
	}
	if l.parkedAge > 0 {
		m.add("ParkedMillis", unitMillis, l.parkedAge.Milliseconds())
	}
	m.add("DurationMillis", unitMillis, l.duration.Milliseconds())
	return m
}

// dimensions returns the sets of dimensions of the metrics. It leaves out a set with an empty dimension, which would
// make the document invalid. There are only two sets and no other dimensions, because each set makes metrics that cost
// money.
func (l *LogLine) dimensions() [][]string {
	sets := [][]string{}
	if l.fields.StackName != "" && l.fields.Operation != "" {
		sets = append(sets, []string{"Stack", "Operation"})
		if l.fields.Operator != "" {
			sets = append(sets, []string{"Stack", "Operation", "Operator"})
		}
	}
	return sets
}
