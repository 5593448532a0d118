package template

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template/node"
)

// addAPI reads the stage, its throttle and the gateway responses.
func (t *Template) addAPI(properties *yaml.Node, r *resolver) {
	t.Stage = r.text(node.At(properties, "StageName"))
	for _, setting := range node.Items(node.At(properties, "MethodSettings")) {
		if r.text(node.At(setting, "ResourcePath")) == "/*" { // the setting of the whole stage
			t.Throttle = Throttle{
				RequestsPerSecond: r.number(node.At(setting, "ThrottlingRateLimit"), 0),
				Burst:             int(r.number(node.At(setting, "ThrottlingBurstLimit"), 0)),
			}
		}
	}
	for kind, response := range node.Entries(node.At(properties, "GatewayResponses")) {
		t.GatewayResponses[kind] = r.readGatewayResponse(response)
	}
}

// readGatewayResponse reads one gateway response. Header values are static texts in single quotes.
func (r *resolver) readGatewayResponse(n *yaml.Node) GatewayResponse {
	response := GatewayResponse{
		Status:  int(r.number(node.At(n, "StatusCode"), 0)),
		Body:    r.text(node.At(n, "ResponseTemplates", "application/json")),
		Headers: map[string]string{},
	}
	for name, header := range node.Entries(node.At(n, "ResponseParameters", "Headers")) {
		value := r.text(header)
		if len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
			r.Fail(header, "the header value is not a static text in single quotes")
			continue
		}
		response.Headers[name] = value[1 : len(value)-1]
	}
	return response
}

// addFunction reads a function, over the template's globals, and its events.
func (t *Template) addFunction(id string, properties *yaml.Node, root *document, r *resolver) {
	f := Function{LogicalID: id, Environment: map[string]string{}}
	for _, section := range []*yaml.Node{&root.Globals.Function, properties} {
		if n := node.At(section, "CodeUri"); n != nil {
			f.CodeURI = n.Value
		}
		f.Timeout = time.Duration(r.number(node.At(section, "Timeout"), f.Timeout.Seconds())) * time.Second
		f.MemoryMB = int(r.number(node.At(section, "MemorySize"), float64(f.MemoryMB)))
		f.ReservedConcurrency = int(r.number(node.At(section, "ReservedConcurrentExecutions"),
			float64(f.ReservedConcurrency)))
		for name, value := range node.Entries(node.At(section, "Environment", "Variables")) {
			f.Environment[name] = r.text(value)
		}
	}
	name, below := strings.CutPrefix(path.Clean(f.CodeURI), "functions/")
	name, isBootstrap := strings.CutSuffix(name, "/bootstrap")
	if !below || !isBootstrap {
		r.Fail(properties, "CodeUri %q is not functions/<name>/bootstrap/", f.CodeURI)
	}
	f.Name = name
	for _, event := range node.Entries(node.At(properties, "Events")) {
		t.addEvent(&f, event, r)
	}
	t.Functions = append(t.Functions, f)
}

func (t *Template) addEvent(f *Function, n *yaml.Node, r *resolver) {
	properties := node.At(n, "Properties")
	switch kind := r.text(node.At(n, "Type")); kind {
	case "Api":
		t.Routes = append(t.Routes, Route{
			Method:   strings.ToUpper(r.text(node.At(properties, "Method"))),
			Resource: r.text(node.At(properties, "Path")),
			Function: f.LogicalID,
		})
	case "DynamoDB":
		f.Streams = append(f.Streams, r.readStream(n, properties))
	case "Schedule":
		if r.text(node.At(properties, "State")) != "DISABLED" {
			f.Schedules = append(f.Schedules, Schedule{
				Expression: r.text(node.At(properties, "Schedule")), Input: r.text(node.At(properties, "Input")),
			})
		}
	default:
		r.Fail(n, "an event of type %q is not supported", kind)
	}
}

func (r *resolver) readStream(event, properties *yaml.Node) Stream {
	arn := node.OwnResource(node.At(properties, "Stream"))
	if arn == nil || arn.Tag != "!GetAtt" || !strings.HasSuffix(arn.Value, ".StreamArn") {
		r.Fail(event, "Stream is not !GetAtt <Table>.StreamArn")
		return Stream{}
	}
	number := func(name string, fallback int) int {
		return int(r.number(node.At(properties, name), float64(fallback)))
	}
	bisect := node.At(properties, "BisectBatchOnFunctionError")
	stream := Stream{
		Table:                 strings.TrimSuffix(arn.Value, ".StreamArn"),
		BatchSize:             number("BatchSize", 100),
		ParallelizationFactor: number("ParallelizationFactor", 1),
		MaxRetryAttempts:      number("MaximumRetryAttempts", -1),
		MaxRecordAge:          time.Duration(max(0, number("MaximumRecordAgeInSeconds", 0))) * time.Second,
		BisectOnError:         bisect != nil && bisect.Value == "true",
		ReportsItemFailures: slices.ContainsFunc(node.Items(node.At(properties, "FunctionResponseTypes")),
			func(n *yaml.Node) bool { return n.Value == "ReportBatchItemFailures" }),
	}
	for _, n := range node.Items(node.At(properties, "FilterCriteria", "Filters")) {
		filter, err := NewFilter(r.text(node.At(n, "Pattern")))
		if err != nil {
			r.Fail(n, "%w", err)
		}
		stream.Filters = append(stream.Filters, filter)
	}
	return stream
}

func (t *Template) addTable(id string, properties *yaml.Node, r *resolver) {
	table := Table{
		LogicalID: id, Name: r.references[id],
		StreamView: r.text(node.At(properties, "StreamSpecification", "StreamViewType")),
	}
	if properties != nil {
		if err := properties.Decode(&table); err != nil {
			r.Fail(properties, "%w", err)
		}
	}
	t.Tables = append(t.Tables, table)
}

// Filter is one pattern of an event source. A record matches if each leaf of the pattern lists the value that the
// record has at the same place. Leaves are lists of texts, numbers, true, false and null; operators are not supported.
type Filter struct{ pattern map[string]any }

// NewFilter parses a pattern.
func NewFilter(pattern string) (Filter, error) {
	var f Filter
	if err := json.Unmarshal([]byte(pattern), &f.pattern); err != nil {
		return Filter{}, fmt.Errorf("a filter pattern is not a JSON object: %w", err)
	}
	return f, validatePattern(f.pattern)
}

// validatePattern rejects what Matches does not support.
func validatePattern(pattern map[string]any) error {
	for key, value := range pattern {
		switch v := value.(type) {
		case map[string]any:
			if err := validatePattern(v); err != nil {
				return err
			}
		case []any:
			isOperator := func(item any) bool { _, isObject := item.(map[string]any); return isObject }
			if slices.ContainsFunc(v, isOperator) {
				return fmt.Errorf("the filter operator at %q is not supported: use plain values", key)
			}
		default:
			return fmt.Errorf("the filter pattern's value at %q is not a list", key)
		}
	}
	return nil
}

// Matches reports whether a record, as decoded from JSON, matches the filter.
func (f Filter) Matches(record map[string]any) bool { return matchesPattern(f.pattern, record) }

func matchesPattern(pattern, record map[string]any) bool {
	for key, want := range pattern {
		actual, present := record[key]
		if allowed, isLeaf := want.([]any); isLeaf {
			if !present || !slices.Contains(allowed, actual) {
				return false
			}
			continue
		}
		inner, isObject := actual.(map[string]any)
		if !isObject || !matchesPattern(want.(map[string]any), inner) {
			return false
		}
	}
	return true
}
