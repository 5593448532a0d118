package template

import (
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// addAPI reads the stage, its throttle and the gateway responses.
func (t *Template) addAPI(properties *yaml.Node, r *resolver) error {
	stage, err := r.text(child(properties, "StageName"))
	if err != nil {
		return err
	}
	t.Stage = stage
	if settings := child(properties, "MethodSettings"); settings != nil {
		for _, setting := range settings.Content {
			if err := t.addThrottle(setting, r); err != nil {
				return err
			}
		}
	}
	for _, entry := range pairs(child(properties, "GatewayResponses")) {
		response, err := gatewayResponse(entry.value, r)
		if err != nil {
			return fmt.Errorf("%s: %w", entry.key, err)
		}
		t.GatewayResponses[entry.key] = response
	}
	return nil
}

// addThrottle reads the method setting that covers the whole stage.
func (t *Template) addThrottle(setting *yaml.Node, r *resolver) error {
	path, err := r.text(child(setting, "ResourcePath"))
	if err != nil || path != "/*" {
		return err
	}
	rate, err := r.number(child(setting, "ThrottlingRateLimit"))
	if err != nil {
		return err
	}
	burst, err := r.number(child(setting, "ThrottlingBurstLimit"))
	if err != nil {
		return err
	}
	t.Throttle = Throttle{Rate: rate, Burst: int(burst)}
	return nil
}

// gatewayResponse reads one gateway response. Header values are static texts, written in single quotes.
func gatewayResponse(n *yaml.Node, r *resolver) (GatewayResponse, error) {
	status, err := r.number(child(n, "StatusCode"))
	if err != nil {
		return GatewayResponse{}, err
	}
	body, err := r.text(child(child(n, "ResponseTemplates"), "application/json"))
	if err != nil {
		return GatewayResponse{}, err
	}
	response := GatewayResponse{Status: int(status), Body: body, Headers: map[string]string{}}
	for _, header := range pairs(child(child(n, "ResponseParameters"), "Headers")) {
		value, err := r.text(header.value)
		if err != nil {
			return GatewayResponse{}, err
		}
		if len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
			return GatewayResponse{}, fmt.Errorf("line %d: only a static value in single quotes is understood", header.value.Line)
		}
		response.Headers[header.key] = value[1 : len(value)-1]
	}
	return response, nil
}

// addFunction reads a function, over the template's globals, and its events.
func (t *Template) addFunction(id string, properties *yaml.Node, root *document, r *resolver) error {
	f := Function{LogicalID: id, Environment: map[string]string{}}
	for _, level := range []*yaml.Node{&root.Globals.Function, properties} {
		if err := f.read(level, r); err != nil {
			return err
		}
	}
	name, found := strings.CutPrefix(path.Clean(f.CodeURI), "functions/")
	if !found || !strings.HasSuffix(name, "/bootstrap") {
		return fmt.Errorf("CodeUri %q is not functions/<name>/bootstrap/", f.CodeURI)
	}
	f.Name = strings.TrimSuffix(name, "/bootstrap")
	if err := f.readRole(properties); err != nil {
		return err
	}
	for _, event := range pairs(child(properties, "Events")) {
		if err := t.addEvent(&f, event.value, r); err != nil {
			return fmt.Errorf("event %s: %w", event.key, err)
		}
	}
	t.Functions = append(t.Functions, f)
	return nil
}

// read takes what one level, globals or the function itself, says.
func (f *Function) read(level *yaml.Node, r *resolver) error {
	if n := child(level, "CodeUri"); n != nil {
		f.CodeURI = n.Value
	}
	if n := child(level, "Timeout"); n != nil {
		seconds, err := r.number(n)
		if err != nil {
			return err
		}
		f.Timeout = time.Duration(seconds) * time.Second
	}
	if n := child(level, "MemorySize"); n != nil {
		memory, err := r.number(n)
		if err != nil {
			return err
		}
		f.Memory = int(memory)
	}
	variables := map[string]string{}
	for _, variable := range pairs(child(child(level, "Environment"), "Variables")) {
		value, err := r.text(variable.value)
		if err != nil {
			return fmt.Errorf("variable %s: %w", variable.key, err)
		}
		variables[variable.key] = value
	}
	maps.Copy(f.Environment, variables)
	return nil
}

// addEvent reads what invokes a function.
func (t *Template) addEvent(f *Function, n *yaml.Node, r *resolver) error {
	properties := child(n, "Properties")
	kind, err := r.text(child(n, "Type"))
	if err != nil {
		return err
	}
	switch kind {
	case "Api":
		method, err := r.text(child(properties, "Method"))
		if err != nil {
			return err
		}
		resource, err := r.text(child(properties, "Path"))
		if err != nil {
			return err
		}
		t.Routes = append(t.Routes, Route{Method: strings.ToUpper(method), Resource: resource, Function: f.LogicalID})
	case "DynamoDB":
		stream, err := readStream(properties, r)
		if err != nil {
			return err
		}
		f.Streams = append(f.Streams, stream)
	case "Schedule":
		schedule, err := r.text(child(properties, "Schedule"))
		if err != nil {
			return err
		}
		f.Schedules = append(f.Schedules, schedule)
	default:
		return fmt.Errorf("line %d: an event of type %q is not understood", n.Line, kind)
	}
	return nil
}

// readStream reads a stream event.
func readStream(properties *yaml.Node, r *resolver) (Stream, error) {
	arn := own(child(properties, "Stream"))
	if arn == nil || arn.Tag != "!GetAtt" || !strings.HasSuffix(arn.Value, ".StreamArn") {
		return Stream{}, fmt.Errorf("Stream is not !GetAtt <Table>.StreamArn")
	}
	stream := Stream{Table: strings.TrimSuffix(arn.Value, ".StreamArn"), BatchSize: 100, Lanes: 1, Retries: -1}
	for name, value := range map[string]*int{
		"BatchSize": &stream.BatchSize, "ParallelizationFactor": &stream.Lanes, "MaximumRetryAttempts": &stream.Retries,
	} {
		n := child(properties, name)
		if n == nil {
			continue
		}
		number, err := r.number(n)
		if err != nil {
			return Stream{}, err
		}
		*value = int(number)
	}
	age, err := r.number(child(properties, "MaximumRecordAgeInSeconds"))
	if err != nil {
		return Stream{}, err
	}
	stream.MaxAge = max(0, time.Duration(age)*time.Second)
	if n := child(properties, "BisectBatchOnFunctionError"); n != nil {
		stream.Bisect = n.Value == "true"
	}
	if types := child(properties, "FunctionResponseTypes"); types != nil {
		for _, n := range types.Content {
			stream.ItemFailures = stream.ItemFailures || n.Value == "ReportBatchItemFailures"
		}
	}
	stream.Filters, err = readFilters(child(child(properties, "FilterCriteria"), "Filters"))
	return stream, err
}

// addTable reads a table.
func (t *Template) addTable(id string, properties *yaml.Node, r *resolver) error {
	var raw struct {
		AttributeDefinitions   []yamlAttribute `yaml:"AttributeDefinitions"`
		KeySchema              []yamlKey       `yaml:"KeySchema"`
		GlobalSecondaryIndexes []yamlIndex     `yaml:"GlobalSecondaryIndexes"`
		StreamSpecification    yamlStreamView  `yaml:"StreamSpecification"`
		TimeToLive             yamlTimeToLive  `yaml:"TimeToLiveSpecification"`
	}
	if err := properties.Decode(&raw); err != nil {
		return err
	}
	table := Table{
		LogicalID: id, Name: r.names[id], Attributes: attributes(raw.AttributeDefinitions), Key: keys(raw.KeySchema),
		StreamView: raw.StreamSpecification.StreamViewType, TTL: raw.TimeToLive.AttributeName,
	}
	for _, index := range raw.GlobalSecondaryIndexes {
		table.Indexes = append(table.Indexes, Index{
			IndexName: index.IndexName, Key: keys(index.KeySchema), Projection: index.Projection.ProjectionType,
		})
	}
	t.Tables = append(t.Tables, table)
	return nil
}

// number resolves a number; nil gives 0.
func (r *resolver) number(n *yaml.Node) (float64, error) {
	text, err := r.text(n)
	if err != nil || text == "" {
		return 0, err
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("line %d: %q is not a number", n.Line, text)
	}
	return value, nil
}
