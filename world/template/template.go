// Package template reads the deployment's template.yaml: its routes, functions, tables, secrets and gateway responses,
// with references resolved. The local run, the tests and the benchmarks therefore use what is deployed. Package roles
// reads the permissions.
//
// It supports the part of AWS SAM and CloudFormation that this template uses. In a value that it reads, an unsupported
// intrinsic function is an error that names the line. It changes nothing and starts nothing.
package template

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template/node"
)

// Template is the content of a template. Each list is in the order of the file.
type Template struct {
	Stage            string
	Throttle         Throttle
	Routes           []Route
	GatewayResponses map[string]GatewayResponse // by response type
	Functions        []Function
	Tables           []Table
	Secrets          []Secret
	// References are what !Ref resolves to: parameters' values (the given ones, else the defaults), pseudo parameters,
	// and resources' names by logical id.
	References map[string]string
}

// Throttle is the stage's rate limit over all callers. Zero values mean no limit.
type Throttle struct {
	RequestsPerSecond float64
	Burst             int // requests at once beyond the rate
}

// Route binds a method and a resource path to a function.
type Route struct {
	Method   string // upper case
	Resource string // such as /token or /payment/v1/{endUserId}/transactions/amount
	Function string // logical id
}

// GatewayResponse is a response that the API sends without invoking a function.
type GatewayResponse struct {
	Status  int               // 0: the response type's own status
	Headers map[string]string // static values
	Body    string            // the application/json template
}

// Function is one deployed program.
type Function struct {
	LogicalID string
	// Name is the folder below functions/ with the code, such as "charge".
	Name        string
	CodeURI     string // folder of package main, relative to the template
	Timeout     time.Duration
	MemoryMB    int
	Environment map[string]string // Globals and the function's own variables, references resolved
	Streams     []Stream
	Schedules   []Schedule // without those that are disabled
	// ReservedConcurrency is the part of the account's concurrency that only this function uses, and its limit. 0: it
	// shares what no function has reserved.
	ReservedConcurrency int
}

// Schedule invokes a function at fixed times.
type Schedule struct {
	Expression string // such as rate(1 minute)
	Input      string // the event; "" for EventBridge's own
}

// Stream is a DynamoDB stream that invokes a function.
type Stream struct {
	Table                 string // logical id of the table
	BatchSize             int
	ParallelizationFactor int           // batches of a shard that are delivered at once
	MaxRetryAttempts      int           // after the first attempt; -1: until the record is too old
	MaxRecordAge          time.Duration // 0: as long as the stream keeps records
	BisectOnError         bool          // halve a failed batch
	ReportsItemFailures   bool          // the function responds with batchItemFailures
	Filters               []Filter      // a record must match one of them; none: every record matches
}

// Table is a DynamoDB table. Name is what a reference to it resolves to.
type Table struct {
	LogicalID  string       `yaml:"-"`
	Name       string       `yaml:"-"`
	Attributes []Attribute  `yaml:"AttributeDefinitions"`
	Key        []KeyElement `yaml:"KeySchema"`
	Indexes    []Index      `yaml:"GlobalSecondaryIndexes"`
	StreamView string       `yaml:"-"` // "" for no stream
}

// Attribute is one attribute of a key. Its JSON form is DynamoDB's, as are those of KeyElement and Index.
type Attribute struct {
	AttributeName string `yaml:"AttributeName"`
	AttributeType string `yaml:"AttributeType"`
}

// KeyElement is one part of a key.
type KeyElement struct {
	AttributeName string `yaml:"AttributeName"`
	KeyType       string `yaml:"KeyType"`
}

// Index is a global secondary index.
type Index struct {
	IndexName  string       `yaml:"IndexName"`
	KeySchema  []KeyElement `yaml:"KeySchema"`
	Projection Projection   `yaml:"Projection"`
}

// Projection selects the attributes that an index copies.
type Projection struct {
	ProjectionType string `yaml:"ProjectionType"`
}

// Secret is a secret of Secrets Manager. Name is what a reference to it resolves to.
type Secret struct {
	LogicalID string
	Name      string
}

// Options sets what the template itself leaves open.
type Options struct {
	Parameters  map[string]string // override the template's defaults
	StackName   string            // AWS::StackName, "local" by default
	Region      string            // AWS::Region, us-east-1 by default
	TablePrefix string            // prefix of the name of every table that the template leaves unnamed
}

// Load reads a template file. Its error names the file and, if it can, the line.
func Load(path string, options Options) (*Template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	t, err := Parse(text, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse reads a template's text.
func Parse(text []byte, options Options) (*Template, error) {
	var root document
	if err := node.Decode(text, &root); err != nil {
		return nil, err
	}
	r, err := newResolver(&root, options)
	if err != nil {
		return nil, err
	}
	t := &Template{References: r.references, GatewayResponses: map[string]GatewayResponse{}}
	for id, resource := range node.Entries(&root.Resources) {
		t.addResource(id, node.At(resource, "Properties"), &root, r)
		if r.Err != nil {
			return nil, fmt.Errorf("%s: %w", id, r.Err)
		}
	}
	if len(t.Functions) == 0 {
		return nil, errors.New("the template has no function")
	}
	return t, nil
}

// addResource reads one resource. It skips the types that no caller needs.
func (t *Template) addResource(id string, properties *yaml.Node, root *document, r *resolver) {
	switch r.resourceTypes[id] {
	case "AWS::Serverless::Api":
		t.addAPI(properties, r)
	case "AWS::Serverless::Function":
		t.addFunction(id, properties, root, r)
	case "AWS::DynamoDB::Table":
		t.addTable(id, properties, r)
	case "AWS::SecretsManager::Secret":
		t.Secrets = append(t.Secrets, Secret{LogicalID: id, Name: r.references[id]})
	}
}

// Function finds a function by its folder's name; nil if there is none.
func (t *Template) Function(name string) *Function {
	return find(t.Functions, func(f Function) bool { return f.Name == name })
}

// Table finds a table by its logical id; nil if there is none.
func (t *Template) Table(logicalID string) *Table {
	return find(t.Tables, func(table Table) bool { return table.LogicalID == logicalID })
}

func find[T any](list []T, matches func(T) bool) *T {
	if i := slices.IndexFunc(list, matches); i >= 0 {
		return &list[i]
	}
	return nil
}
