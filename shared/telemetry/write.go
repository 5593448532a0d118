package telemetry

import (
	"encoding/json"
	"io"
	"time"
)

// Namespace is the CloudWatch namespace of all metrics.
const Namespace = "MobileGateway"

// line is the document as it is written. Metrics and dimensions are top-level fields, which the Embedded Metric Format
// refers to by name.
type line struct {
	AWS       metadata `json:"_aws"`
	RequestID string   `json:"RequestID,omitempty"`
	Stack     string   `json:"Stack,omitempty"`
	Operation string   `json:"Operation,omitempty"`
	Merchant  string   `json:"Merchant,omitempty"`
	Key       string   `json:"Key,omitempty"`
	Operator  string   `json:"Operator,omitempty"`
	Country   string   `json:"Country,omitempty"`
	Channel   string   `json:"Channel,omitempty"`
	MSISDN    string   `json:"MSISDN,omitempty"`
	Outcome   string   `json:"Outcome,omitempty"`
	ErrorID   string   `json:"ErrorID,omitempty"`
	Status    int      `json:"Status,omitempty"`
	Replayed  bool     `json:"Replayed,omitempty"`
	Cold      bool     `json:"Cold,omitempty"`
	Cause     string   `json:"Cause,omitempty"`
	numbers
}

// numbers are the fields that metrics refer to. A pointer is nil where there is nothing to measure.
type numbers struct {
	Requests             int    `json:"Requests"`
	Errors               int    `json:"Errors"`
	Replays              int    `json:"Replays,omitempty"`
	MismatchedReplays    int    `json:"MismatchedReplays,omitempty"`
	Unknowns             int    `json:"Unknowns,omitempty"`
	Released             int    `json:"Released,omitempty"`
	Refused              int    `json:"Refused,omitempty"`
	Conflicts            int    `json:"Conflicts,omitempty"`
	OperatorAuthFailures int    `json:"OperatorAuthFailures,omitempty"`
	Delivered            int    `json:"Delivered,omitempty"`
	DeliveryFailures     int    `json:"DeliveryFailures,omitempty"`
	DeadLetters          int    `json:"DeadLetters,omitempty"`
	LookupFailures       int    `json:"LookupFailures,omitempty"`
	StaleUnknowns        int    `json:"StaleUnknowns,omitempty"`
	UserSMSFailures      int    `json:"UserSMSFailures,omitempty"`
	EndpointsDisabled    int    `json:"EndpointsDisabled,omitempty"`
	Throttled            int    `json:"Throttled,omitempty"`
	LimitRefused         int    `json:"LimitRefused,omitempty"`
	LimitFailures        int    `json:"LimitFailures,omitempty"`
	InternalErrors       int    `json:"InternalErrors,omitempty"`
	UpstreamMillis       *int64 `json:"UpstreamMillis,omitempty"`
	OverdueMillis        *int64 `json:"OverdueMillis,omitempty"`
	TotalMillis          int64  `json:"TotalMillis"`
}

// metadata is the head of the Embedded Metric Format.
type metadata struct {
	Timestamp         int64       `json:"Timestamp"` // milliseconds since 1970
	CloudWatchMetrics []directive `json:"CloudWatchMetrics"`
}

type directive struct {
	Namespace  string     `json:"Namespace"`
	Dimensions [][]string `json:"Dimensions"`
	Metrics    []metric   `json:"Metrics"`
}

type metric struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// Write writes the line with its newline in one call of w, so that lines of parallel work do not mix. Every event
// counts as one of Requests, and with a status from 500 on as one of Errors; other counters appear where they are not
// zero, UpstreamMillis where the operator was called, OverdueMillis where SetOverdue was.
func (e *Event) Write(w io.Writer) error {
	document := line{
		AWS:       metadata{Timestamp: e.started.UnixMilli(), CloudWatchMetrics: []directive{e.directive()}},
		RequestID: e.requestID, Stack: e.stack, Operation: e.operation, Merchant: e.merchant, Key: e.key, Operator: e.operator,
		Country: e.country, Channel: e.channel, MSISDN: e.msisdn, Outcome: e.outcome, ErrorID: e.errorID,
		Status: e.status, Replayed: e.replayed, Cold: e.cold, Cause: e.cause,
		numbers: e.numbers(),
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return err
	}
	_, err = w.Write(append(encoded, '\n'))
	return err
}

func (e *Event) numbers() numbers {
	n := numbers{
		Requests:             1,
		Replays:              e.counters[Replays],
		MismatchedReplays:    e.counters[MismatchedReplays],
		Unknowns:             e.counters[Unknowns],
		Released:             e.counters[Released],
		Refused:              e.counters[Refused],
		Conflicts:            e.counters[Conflicts],
		OperatorAuthFailures: e.counters[OperatorAuthFailures],
		Delivered:            e.counters[Delivered],
		DeliveryFailures:     e.counters[DeliveryFailures],
		DeadLetters:          e.counters[DeadLetters],
		LookupFailures:       e.counters[LookupFailures],
		StaleUnknowns:        e.counters[StaleUnknowns],
		UserSMSFailures:      e.counters[UserSMSFailures],
		EndpointsDisabled:    e.counters[EndpointsDisabled],
		Throttled:            e.counters[Throttled],
		LimitRefused:         e.counters[LimitRefused],
		LimitFailures:        e.counters[LimitFailures],
		InternalErrors:       e.counters[InternalErrors],
		UpstreamMillis:       millis(e.upstream, e.called),
		OverdueMillis:        millis(e.overdue, e.late),
		TotalMillis:          e.total.Milliseconds(),
	}
	if e.status >= 500 {
		n.Errors = 1
	}
	return n
}

// millis is nil where nothing was measured.
func millis(spent time.Duration, measured bool) *int64 {
	if !measured {
		return nil
	}
	whole := spent.Milliseconds()
	return &whole
}

// directive tells CloudWatch which fields are metrics: exactly those that are in the line. A dimension without a value
// would make the document invalid, so that its set is left out. Each set makes metrics of its own, which cost: there are
// two, and no other field is a dimension.
func (e *Event) directive() directive {
	d := directive{Namespace: Namespace, Dimensions: [][]string{}}
	if e.stack != "" && e.operation != "" {
		d.Dimensions = append(d.Dimensions, []string{"Stack", "Operation"})
		if e.operator != "" {
			d.Dimensions = append(d.Dimensions, []string{"Stack", "Operation", "Operator"})
		}
	}
	d.Metrics = append(d.Metrics, metric{"Requests", "Count"}, metric{"Errors", "Count"})
	for counter, count := range e.counters {
		if count != 0 {
			d.Metrics = append(d.Metrics, metric{Counter(counter).String(), "Count"})
		}
	}
	if e.called {
		d.Metrics = append(d.Metrics, metric{"UpstreamMillis", "Milliseconds"})
	}
	if e.late {
		d.Metrics = append(d.Metrics, metric{"OverdueMillis", "Milliseconds"})
	}
	d.Metrics = append(d.Metrics, metric{"TotalMillis", "Milliseconds"})
	return d
}
