// Package template reads the deployment's template.yaml: its routes, functions, tables, secrets and gateway responses,
// with references resolved, so that whatever runs the gateway elsewhere than on AWS cannot drift from what is deployed.
//
// It understands the part of AWS SAM and CloudFormation that this project's template uses, and refuses the rest where it
// would matter: an unknown intrinsic function in a value that is read is an error that names its line. It changes
// nothing and starts nothing.
package template

import (
	"errors"
	"fmt"
	"os"
	"time"

	"go.yaml.in/yaml/v3"
)

// Template is what the deployment consists of, each list in the order of the file.
type Template struct {
	Stage            string
	Throttle         Throttle
	Routes           []Route
	GatewayResponses map[string]GatewayResponse // by response type
	Functions        []Function
	Tables           []Table
	Secrets          []Secret
	Roles            []Role
	// Parameters are the template's parameters with the values in force.
	Parameters map[string]string
}

// Throttle is the stage's limit over all callers. Zero values mean no limit.
type Throttle struct {
	RequestsPerSecond float64 // requests a second
	Burst             int     // requests at once beyond the rate
}

// Route binds a method and a resource path to a function.
type Route struct {
	Method   string // upper case
	Resource string // such as /token or /payment/v1/{endUserId}/transactions/amount
	Function string // logical id
}

// GatewayResponse is what the API answers without a function.
type GatewayResponse struct {
	Status  int               // 0: the response type's own status
	Headers map[string]string // static values
	Body    string            // the application/json template
}

// Function is one deployed program.
type Function struct {
	LogicalID string
	// Name is the folder below functions/ that holds the code, such as "charge".
	Name     string
	CodeURI  string // folder of package main, relative to the template
	Timeout  time.Duration
	MemoryMB int // MB
	// Environment has Globals and the function's own variables, references resolved.
	Environment map[string]string
	Streams     []Stream
	Schedules   []string // expressions such as rate(1 minute)
	// Role and LogGroup are logical ids, "" where the template leaves them to AWS.
	Role     string
	LogGroup string
}

// Stream is a DynamoDB stream that invokes a function.
type Stream struct {
	Table                 string // logical id of the table
	BatchSize             int
	ParallelizationFactor int           // batches of a shard that are handed on at once (ParallelizationFactor)
	MaxRetryAttempts      int           // after the first attempt; -1: until the record is too old
	MaxRecordAge          time.Duration // 0: as long as the stream keeps records
	BisectOnError         bool          // halve a failed batch
	ReportsItemFailures   bool          // the function answers with batchItemFailures
	Filters               []Filter      // a record must pass one of them; none: every record passes
}

// Table is a DynamoDB table. Name is what a reference to it resolves to.
type Table struct {
	LogicalID  string
	Name       string
	Attributes []Attribute
	Key        []KeyElement
	Indexes    []Index
	StreamView string // "" for no stream
	TTL        string // attribute, "" for none
}

// Attribute is one attribute of a key.
type Attribute struct{ AttributeName, AttributeType string }

// KeyElement is one part of a key.
type KeyElement struct{ AttributeName, KeyType string }

// Index is a global secondary index.
type Index struct {
	IndexName  string
	Key        []KeyElement
	Projection string
}

// Secret is a secret of Secrets Manager. Name is what a reference to it resolves to.
type Secret struct {
	LogicalID string
	Name      string
}

// Options says what the template itself leaves open.
type Options struct {
	// Parameters override the template's defaults.
	Parameters map[string]string
	// StackName is the value of AWS::StackName.
	StackName string
	// Region is the value of AWS::Region.
	Region string
	// TablePrefix begins the name of every table that the template leaves unnamed.
	TablePrefix string
}

// Load reads a template file. Its error names the file and, where it can, the line.
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
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	r, err := newResolver(&root, options)
	if err != nil {
		return nil, err
	}
	t := &Template{Parameters: r.parameters, GatewayResponses: map[string]GatewayResponse{}}
	for _, entry := range mappingPairs(&root.Resources) {
		if err := t.addResource(entry, &root, r); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.key, err)
		}
	}
	if len(t.Functions) == 0 {
		return nil, errors.New("no function in it")
	}
	return t, nil
}

// addResource reads one resource; kinds that nothing here needs are passed over.
func (t *Template) addResource(entry mappingPair, root *document, r *resolver) error {
	var resource struct {
		Type       string    `yaml:"Type"`
		Properties yaml.Node `yaml:"Properties"`
	}
	if err := entry.value.Decode(&resource); err != nil {
		return err
	}
	switch resource.Type {
	case "AWS::Serverless::Api":
		return t.addAPI(&resource.Properties, r)
	case "AWS::Serverless::Function":
		return t.addFunction(entry.key, &resource.Properties, root, r)
	case "AWS::DynamoDB::Table":
		return t.addTable(entry.key, &resource.Properties, r)
	case "AWS::IAM::Role":
		return t.addRole(entry.key, &resource.Properties)
	case "AWS::SecretsManager::Secret":
		t.Secrets = append(t.Secrets, Secret{LogicalID: entry.key, Name: r.resourceNames[entry.key]})
	}
	return nil
}

// Function finds a function by its folder's name; nil when there is none.
func (t *Template) Function(name string) *Function {
	for i := range t.Functions {
		if t.Functions[i].Name == name {
			return &t.Functions[i]
		}
	}
	return nil
}

// Table finds a table by its logical id; nil when there is none.
func (t *Template) Table(logicalID string) *Table {
	for i := range t.Tables {
		if t.Tables[i].LogicalID == logicalID {
			return &t.Tables[i]
		}
	}
	return nil
}

// SecretName gives the name of a secret by its logical id; "" when there is none.
func (t *Template) SecretName(logicalID string) string {
	for _, s := range t.Secrets {
		if s.LogicalID == logicalID {
			return s.Name
		}
	}
	return ""
}
