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
	stage, err := r.resolveText(mappingValue(properties, "StageName"))
	if err != nil {
		return err
	}
	t.Stage = stage
	if settings := mappingValue(properties, "MethodSettings"); settings != nil {
		for _, setting := range settings.Content {
			if err := t.addThrottle(setting, r); err != nil {
				return err
			}
		}
	}
	for _, entry := range mappingPairs(mappingValue(properties, "GatewayResponses")) {
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
	path, err := r.resolveText(mappingValue(setting, "ResourcePath"))
	if err != nil || path != "/*" {
		return err
	}
	rate, err := r.resolveNumber(mappingValue(setting, "ThrottlingRateLimit"))
	if err != nil {
		return err
	}
	burst, err := r.resolveNumber(mappingValue(setting, "ThrottlingBurstLimit"))
	if err != nil {
		return err
	}
	t.Throttle = Throttle{RequestsPerSecond: rate, Burst: int(burst)}
	return nil
}

// gatewayResponse reads one gateway response. Header values are static texts, written in single quotes.
func gatewayResponse(n *yaml.Node, r *resolver) (GatewayResponse, error) {
	status, err := r.resolveNumber(mappingValue(n, "StatusCode"))
	if err != nil {
		return GatewayResponse{}, err
	}
	body, err := r.resolveText(mappingValue(mappingValue(n, "ResponseTemplates"), "application/json"))
	if err != nil {
		return GatewayResponse{}, err
	}
	response := GatewayResponse{Status: int(status), Body: body, Headers: map[string]string{}}
	for _, header := range mappingPairs(mappingValue(mappingValue(n, "ResponseParameters"), "Headers")) {
		value, err := r.resolveText(header.value)
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
	for _, section := range []*yaml.Node{&root.Globals.Function, properties} {
		if err := f.readProperties(section, r); err != nil {
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
	for _, event := range mappingPairs(mappingValue(properties, "Events")) {
		if err := t.addEvent(&f, event.value, r); err != nil {
			return fmt.Errorf("event %s: %w", event.key, err)
		}
	}
	t.Functions = append(t.Functions, f)
	return nil
}

// readProperties takes what one level, globals or the function itself, says.
func (f *Function) readProperties(section *yaml.Node, r *resolver) error {
	if n := mappingValue(section, "CodeUri"); n != nil {
		f.CodeURI = n.Value
	}
	if n := mappingValue(section, "Timeout"); n != nil {
		seconds, err := r.resolveNumber(n)
		if err != nil {
			return err
		}
		f.Timeout = time.Duration(seconds) * time.Second
	}
	if n := mappingValue(section, "MemorySize"); n != nil {
		memory, err := r.resolveNumber(n)
		if err != nil {
			return err
		}
		f.MemoryMB = int(memory)
	}
	variables := map[string]string{}
	for _, variable := range mappingPairs(mappingValue(mappingValue(section, "Environment"), "Variables")) {
		value, err := r.resolveText(variable.value)
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
	properties := mappingValue(n, "Properties")
	kind, err := r.resolveText(mappingValue(n, "Type"))
	if err != nil {
		return err
	}
	switch kind {
	case "Api":
		method, err := r.resolveText(mappingValue(properties, "Method"))
		if err != nil {
			return err
		}
		resource, err := r.resolveText(mappingValue(properties, "Path"))
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
		schedule, err := r.resolveText(mappingValue(properties, "Schedule"))
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
	arn := ownResource(mappingValue(properties, "Stream"))
	if arn == nil || arn.Tag != "!GetAtt" || !strings.HasSuffix(arn.Value, ".StreamArn") {
		return Stream{}, fmt.Errorf("Stream is not !GetAtt <Table>.StreamArn")
	}
	stream := Stream{Table: strings.TrimSuffix(arn.Value, ".StreamArn"), BatchSize: 100, ParallelizationFactor: 1, MaxRetryAttempts: -1}
	for name, value := range map[string]*int{
		"BatchSize": &stream.BatchSize, "ParallelizationFactor": &stream.ParallelizationFactor, "MaximumRetryAttempts": &stream.MaxRetryAttempts,
	} {
		n := mappingValue(properties, name)
		if n == nil {
			continue
		}
		number, err := r.resolveNumber(n)
		if err != nil {
			return Stream{}, err
		}
		*value = int(number)
	}
	age, err := r.resolveNumber(mappingValue(properties, "MaximumRecordAgeInSeconds"))
	if err != nil {
		return Stream{}, err
	}
	stream.MaxRecordAge = max(0, time.Duration(age)*time.Second)
	if n := mappingValue(properties, "BisectBatchOnFunctionError"); n != nil {
		stream.BisectOnError = n.Value == "true"
	}
	if types := mappingValue(properties, "FunctionResponseTypes"); types != nil {
		for _, n := range types.Content {
			stream.ReportsItemFailures = stream.ReportsItemFailures || n.Value == "ReportBatchItemFailures"
		}
	}
	stream.Filters, err = readFilters(mappingValue(mappingValue(properties, "FilterCriteria"), "Filters"))
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
		LogicalID: id, Name: r.resourceNames[id], Attributes: attributeDefinitions(raw.AttributeDefinitions), Key: keyElements(raw.KeySchema),
		StreamView: raw.StreamSpecification.StreamViewType, TTL: raw.TimeToLive.AttributeName,
	}
	for _, index := range raw.GlobalSecondaryIndexes {
		table.Indexes = append(table.Indexes, Index{
			IndexName: index.IndexName, Key: keyElements(index.KeySchema), Projection: index.Projection.ProjectionType,
		})
	}
	t.Tables = append(t.Tables, table)
	return nil
}

// resolveNumber resolves a number; nil gives 0.
func (r *resolver) resolveNumber(n *yaml.Node) (float64, error) {
	text, err := r.resolveText(n)
	if err != nil || text == "" {
		return 0, err
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("line %d: %q is not a number", n.Line, text)
	}
	return value, nil
}
