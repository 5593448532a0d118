package telemetry

import (
	"encoding/json"
	"io"
	"time"
)

// Namespace is the CloudWatch namespace of all metrics.
const Namespace = "MobileGateway"

// logDocument is the document as it is written. Metrics and dimensions are top-level fields, which the Embedded Metric Format
// refers to by name.
type logDocument struct {
	AWS            metadata `json:"_aws"`
	RequestID      string   `json:"RequestID,omitempty"`
	StackName      string   `json:"Stack,omitempty"`
	Operation      string   `json:"Operation,omitempty"`
	Merchant       string   `json:"Merchant,omitempty"`
	TransactionKey string   `json:"TransactionKey,omitempty"`
	Operator       string   `json:"Operator,omitempty"`
	Country        string   `json:"Country,omitempty"`
	Channel        string   `json:"Channel,omitempty"`
	MSISDN         string   `json:"MSISDN,omitempty"`
	Outcome        string   `json:"Outcome,omitempty"`
	ErrorID        string   `json:"ErrorID,omitempty"`
	Status         int      `json:"Status,omitempty"`
	Repeated       bool     `json:"Repeated,omitempty"`
	ColdStart      bool     `json:"ColdStart,omitempty"`
	Cause          string   `json:"Cause,omitempty"`
	metricValues
}

// metricValues are the fields that metrics refer to. A pointer is nil where there is nothing to measure.
type metricValues struct {
	Requests                int    `json:"Requests"`
	Errors                  int    `json:"Errors"`
	RepeatedRequests        int    `json:"RepeatedRequests,omitempty"`
	MismatchedRepeats       int    `json:"MismatchedRepeats,omitempty"`
	UnknownOutcomes         int    `json:"UnknownOutcomes,omitempty"`
	NotAppliedCalls         int    `json:"NotAppliedCalls,omitempty"`
	OperatorRefusals        int    `json:"OperatorRefusals,omitempty"`
	StatusConflicts         int    `json:"StatusConflicts,omitempty"`
	OperatorAuthFailures    int    `json:"OperatorAuthFailures,omitempty"`
	DeliveredNotifications  int    `json:"DeliveredNotifications,omitempty"`
	DeliveryAttemptFailures int    `json:"DeliveryAttemptFailures,omitempty"`
	DeadLetters             int    `json:"DeadLetters,omitempty"`
	LookupFailures          int    `json:"LookupFailures,omitempty"`
	StaleUnknownOutcomes    int    `json:"StaleUnknownOutcomes,omitempty"`
	UserSMSFailures         int    `json:"UserSMSFailures,omitempty"`
	EndpointsDisabled       int    `json:"EndpointsDisabled,omitempty"`
	RateLimitedRequests     int    `json:"RateLimitedRequests,omitempty"`
	DailyLimitRefusals      int    `json:"DailyLimitRefusals,omitempty"`
	LimitStoreFailures      int    `json:"LimitStoreFailures,omitempty"`
	InternalErrors          int    `json:"InternalErrors,omitempty"`
	OperatorMillis          *int64 `json:"OperatorMillis,omitempty"`
	ScheduleDelayMillis     *int64 `json:"ScheduleDelayMillis,omitempty"`
	DurationMillis          int64  `json:"DurationMillis"`
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
// zero, OperatorMillis where the operator was called, ScheduleDelayMillis where SetScheduleDelay was.
func (e *LogLine) Write(w io.Writer) error {
	document := logDocument{
		AWS:       metadata{Timestamp: e.started.UnixMilli(), CloudWatchMetrics: []directive{e.metricDirective()}},
		RequestID: e.requestID, StackName: e.stack, Operation: e.operation, Merchant: e.merchant, TransactionKey: e.transactionKey, Operator: e.operator,
		Country: e.country, Channel: e.channel, MSISDN: e.msisdn, Outcome: e.outcome, ErrorID: e.errorID,
		Status: e.status, Repeated: e.repeated, ColdStart: e.coldStart, Cause: e.cause,
		metricValues: e.metricValues(),
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return err
	}
	_, err = w.Write(append(encoded, '\n'))
	return err
}

func (e *LogLine) metricValues() metricValues {
	n := metricValues{
		Requests:                1,
		RepeatedRequests:        e.counters[RepeatedRequests],
		MismatchedRepeats:       e.counters[MismatchedRepeats],
		UnknownOutcomes:         e.counters[UnknownOutcomes],
		NotAppliedCalls:         e.counters[NotAppliedCalls],
		OperatorRefusals:        e.counters[OperatorRefusals],
		StatusConflicts:         e.counters[StatusConflicts],
		OperatorAuthFailures:    e.counters[OperatorAuthFailures],
		DeliveredNotifications:  e.counters[DeliveredNotifications],
		DeliveryAttemptFailures: e.counters[DeliveryAttemptFailures],
		DeadLetters:             e.counters[DeadLetters],
		LookupFailures:          e.counters[LookupFailures],
		StaleUnknownOutcomes:    e.counters[StaleUnknownOutcomes],
		UserSMSFailures:         e.counters[UserSMSFailures],
		EndpointsDisabled:       e.counters[EndpointsDisabled],
		RateLimitedRequests:     e.counters[RateLimitedRequests],
		DailyLimitRefusals:      e.counters[DailyLimitRefusals],
		LimitStoreFailures:      e.counters[LimitStoreFailures],
		InternalErrors:          e.counters[InternalErrors],
		OperatorMillis:          optionalMillis(e.operatorTime, e.operatorCalled),
		ScheduleDelayMillis:     optionalMillis(e.scheduleDelay, e.delayMeasured),
		DurationMillis:          e.duration.Milliseconds(),
	}
	if e.status >= 500 {
		n.Errors = 1
	}
	return n
}

// optionalMillis is nil where nothing was measured.
func optionalMillis(elapsed time.Duration, measured bool) *int64 {
	if !measured {
		return nil
	}
	milliseconds := elapsed.Milliseconds()
	return &milliseconds
}

// metricDirective tells CloudWatch which fields are metrics: exactly those that are in the line. A dimension without a value
// would make the document invalid, so that its set is left out. Each set makes metrics of its own, which cost: there are
// two, and no other field is a dimension.
func (e *LogLine) metricDirective() directive {
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
	if e.operatorCalled {
		d.Metrics = append(d.Metrics, metric{"OperatorMillis", "Milliseconds"})
	}
	if e.delayMeasured {
		d.Metrics = append(d.Metrics, metric{"ScheduleDelayMillis", "Milliseconds"})
	}
	d.Metrics = append(d.Metrics, metric{"DurationMillis", "Milliseconds"})
	return d
}
