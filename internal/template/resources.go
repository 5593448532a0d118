package template

import (
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// addAPI reads the stage, its throttle and the gateway responses.
func (t *Template) addAPI(properties *yaml.Node, r *resolver) {
	t.Stage = r.text(valueAt(properties, "StageName"))
	for _, setting := range items(valueAt(properties, "MethodSettings")) {
		if r.text(valueAt(setting, "ResourcePath")) == "/*" { // the setting of the whole stage
			t.Throttle = Throttle{
				RequestsPerSecond: r.number(valueAt(setting, "ThrottlingRateLimit"), 0),
				Burst:             int(r.number(valueAt(setting, "ThrottlingBurstLimit"), 0)),
			}
		}
	}
	for kind, response := range entries(valueAt(properties, "GatewayResponses")) {
		t.GatewayResponses[kind] = r.readGatewayResponse(response)
	}
}

// readGatewayResponse reads one gateway response. Header values are static texts in single quotes.
func (r *resolver) readGatewayResponse(n *yaml.Node) GatewayResponse {
	response := GatewayResponse{
		Status:  int(r.number(valueAt(n, "StatusCode"), 0)),
		Body:    r.text(valueAt(n, "ResponseTemplates", "application/json")),
		Headers: map[string]string{},
	}
	for name, header := range entries(valueAt(n, "ResponseParameters", "Headers")) {
		value := r.text(header)
		if len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
			r.fail(header, "the header value is not a static text in single quotes")
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
		if n := valueAt(section, "CodeUri"); n != nil {
			f.CodeURI = n.Value
		}
		f.Timeout = time.Duration(r.number(valueAt(section, "Timeout"), f.Timeout.Seconds())) * time.Second
		f.MemoryMB = int(r.number(valueAt(section, "MemorySize"), float64(f.MemoryMB)))
		for name, value := range entries(valueAt(section, "Environment", "Variables")) {
			f.Environment[name] = r.text(value)
		}
	}
	name, below := strings.CutPrefix(path.Clean(f.CodeURI), "functions/")
	name, isBootstrap := strings.CutSuffix(name, "/bootstrap")
	if !below || !isBootstrap {
		r.fail(properties, "CodeUri %q is not functions/<name>/bootstrap/", f.CodeURI)
	}
	f.Name = name
	for _, key := range []string{"Policies", "PermissionsBoundary"} {
		if n := valueAt(properties, key); n != nil {
			r.fail(n, "a function has %s: put its permissions into its role", key)
		}
	}
	f.Role = r.resourceAt(properties, "Role")
	f.LogGroup = r.resourceAt(properties, "LoggingConfig", "LogGroup")
	for _, event := range entries(valueAt(properties, "Events")) {
		t.addEvent(&f, event, r)
	}
	t.Functions = append(t.Functions, f)
}

func (t *Template) addEvent(f *Function, n *yaml.Node, r *resolver) {
	properties := valueAt(n, "Properties")
	switch kind := r.text(valueAt(n, "Type")); kind {
	case "Api":
		t.Routes = append(t.Routes, Route{
			Method:   strings.ToUpper(r.text(valueAt(properties, "Method"))),
			Resource: r.text(valueAt(properties, "Path")),
			Function: f.LogicalID,
		})
	case "DynamoDB":
		f.Streams = append(f.Streams, r.readStream(n, properties))
	case "Schedule":
		f.Schedules = append(f.Schedules, r.text(valueAt(properties, "Schedule")))
	default:
		r.fail(n, "an event of type %q is not supported", kind)
	}
}

func (r *resolver) readStream(event, properties *yaml.Node) Stream {
	arn := ownResource(valueAt(properties, "Stream"))
	if arn == nil || arn.Tag != "!GetAtt" || !strings.HasSuffix(arn.Value, ".StreamArn") {
		r.fail(event, "Stream is not !GetAtt <Table>.StreamArn")
		return Stream{}
	}
	number := func(name string, fallback int) int {
		return int(r.number(valueAt(properties, name), float64(fallback)))
	}
	bisect := valueAt(properties, "BisectBatchOnFunctionError")
	stream := Stream{
		Table:                 strings.TrimSuffix(arn.Value, ".StreamArn"),
		BatchSize:             number("BatchSize", 100),
		ParallelizationFactor: number("ParallelizationFactor", 1),
		MaxRetryAttempts:      number("MaximumRetryAttempts", -1),
		MaxRecordAge:          time.Duration(max(0, number("MaximumRecordAgeInSeconds", 0))) * time.Second,
		BisectOnError:         bisect != nil && bisect.Value == "true",
		ReportsItemFailures: slices.ContainsFunc(items(valueAt(properties, "FunctionResponseTypes")),
			func(n *yaml.Node) bool { return n.Value == "ReportBatchItemFailures" }),
	}
	for _, n := range items(valueAt(properties, "FilterCriteria", "Filters")) {
		filter, err := NewFilter(r.text(valueAt(n, "Pattern")))
		if err != nil {
			r.fail(n, "%w", err)
		}
		stream.Filters = append(stream.Filters, filter)
	}
	return stream
}

func (t *Template) addTable(id string, properties *yaml.Node, r *resolver) {
	table := Table{
		LogicalID: id, Name: r.references[id],
		StreamView: r.text(valueAt(properties, "StreamSpecification", "StreamViewType")),
		TTL:        r.text(valueAt(properties, "TimeToLiveSpecification", "AttributeName")),
	}
	if properties != nil {
		if err := properties.Decode(&table); err != nil {
			r.fail(properties, "%w", err)
		}
	}
	t.Tables = append(t.Tables, table)
}
