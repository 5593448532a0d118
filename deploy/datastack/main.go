// Command datastack writes deploy/data.yaml, by `go generate ./deploy/datastack`. It has the resources that
// template.yaml makes only without a data stack.
//
// So the tables, secrets and log groups are the same in both forms of a deployment.
//
// With -move FILE it prepares the move of a stack's data into a data stack: FILE has the outputs of the gateway's stack
// as lines NAME=VALUE. It writes .local/move.yaml and .local/move.json, which CloudFormation imports (docs/deploy.md).
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"mobilegateway/internal/file"
	"mobilegateway/internal/repository"
	"mobilegateway/world/template/node"
)

//go:generate go run .

func main() {
	move := flag.String("move", "", "file with the outputs of a stack whose data move into a data stack")
	flag.Parse()
	if err := run(*move); err != nil {
		fmt.Fprintln(os.Stderr, "datastack:", err)
		os.Exit(1)
	}
}

func run(move string) error {
	root, err := repository.Root()
	if err != nil {
		return err
	}
	source, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		return err
	}
	if move != "" {
		return writeMove(source, move, filepath.Join(root, ".local"))
	}
	text, err := generate(source)
	if err != nil {
		return fmt.Errorf("template.yaml: %w", err)
	}
	return file.Replace(filepath.Join(root, "deploy", "data.yaml"), text)
}

// writeMove writes the template and the list of the resources that a stack keeps when it is deleted.
func writeMove(source []byte, outputs, folder string) error {
	text, err := os.ReadFile(outputs)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = value
	}
	resources, err := readResources(source)
	if err != nil {
		return fmt.Errorf("template.yaml: %w", err)
	}
	keep(&resources.Resources, isKept)
	list, err := listImports(&resources.Resources, values)
	if err != nil {
		return fmt.Errorf("%s: %w", outputs, err)
	}
	template, err := resources.render("")
	if err != nil {
		return err
	}
	if err := file.Replace(filepath.Join(folder, "move.yaml"), template); err != nil {
		return err
	}
	return file.ReplaceJSON(filepath.Join(folder, "move.json"), list)
}

// isKept reports whether CloudFormation keeps a resource when it deletes the stack.
func isKept(_ string, resource *yaml.Node) bool {
	policy := node.At(resource, "DeletionPolicy")
	return policy != nil && policy.Value != "Delete"
}

// imported is a resource of a change set of the type IMPORT.
type imported struct {
	ResourceType       string
	LogicalResourceID  string `json:"LogicalResourceId"`
	ResourceIdentifier map[string]string
}

// listImports returns the resources with their identifiers, by the outputs of the stack that made them.
func listImports(resources *yaml.Node, outputs map[string]string) (list []imported, err error) {
	for id, resource := range node.Entries(resources) {
		made, identifier := imported{node.At(resource, "Type").Value, id, map[string]string{}}, ""
		name := outputs[id]
		switch made.ResourceType {
		case "AWS::DynamoDB::Table":
			identifier = "TableName"
		case "AWS::SecretsManager::Secret":
			identifier = "Id"
		case "AWS::Logs::LogGroup":
			identifier = "LogGroupName"
		case "AWS::Logs::LogStream":
			identifier, name = "LogGroupName", outputs["AuditLogGroup"]
			made.ResourceIdentifier["LogStreamName"] = node.At(resource, "Properties", "LogStreamName").Value
		}
		if name == "" {
			return nil, fmt.Errorf("no value of %s", id)
		}
		made.ResourceIdentifier[identifier] = name
		list = append(list, made)
	}
	return list, nil
}

// head is the beginning of data.yaml. The parameters of template.yaml follow.
const head = `# Made from template.yaml by go generate ./deploy/datastack: change it there.
AWSTemplateFormatVersion: "2010-09-09"
Description: >-
  Tables, secrets and log groups of a gateway. They stay when the gateway's own stack is deleted. make deploy deploys
  and protects this stack first, and names it to the gateway's stack as DataStack.

Parameters:
  GatewayStack:
    Type: String
    AllowedPattern: "^[A-Za-z][A-Za-z0-9-]{0,127}$"
    Description: Name of the gateway's stack. The names of secrets and log groups begin with it.
`

// document is the part of template.yaml that data.yaml has too.
type document struct {
	Parameters yaml.Node `yaml:"Parameters"`
	Conditions yaml.Node `yaml:"Conditions"`
	Resources  yaml.Node `yaml:"Resources"`
}

// generate returns data.yaml for the text of template.yaml.
func generate(source []byte) ([]byte, error) {
	d, err := readResources(source)
	if err != nil {
		return nil, err
	}
	return d.render("\nOutputs:\n" + listOutputs(&d.Resources))
}

// readResources returns the resources that template.yaml makes only without a data stack, and what they refer to.
func readResources(source []byte) (*document, error) {
	var d document
	if err := node.Decode(source, &d); err != nil {
		return nil, err
	}
	keep(&d.Parameters, func(name string, _ *yaml.Node) bool {
		return name == "KmsKeyArn" || name == "LogRetentionDays"
	})
	keep(&d.Conditions, func(name string, _ *yaml.Node) bool { return name == "HasKmsKey" })
	keep(&d.Resources, func(_ string, resource *yaml.Node) bool {
		condition := node.At(resource, "Condition")
		return condition != nil && condition.Value == node.MakesData
	})
	for _, resource := range node.Entries(&d.Resources) {
		keep(resource, func(name string, _ *yaml.Node) bool { return name != "Condition" })
		adapt(resource)
	}
	return &d, nil
}

// render returns a template with the document's sections and a text for its end.
func (d *document) render(end string) ([]byte, error) {
	out := bytes.NewBufferString(head)
	for _, section := range []struct {
		title   string
		entries *yaml.Node
	}{{"", &d.Parameters}, {"\nConditions:\n", &d.Conditions}, {"\nResources:\n", &d.Resources}} {
		out.WriteString(section.title)
		if err := writeIndented(out, section.entries); err != nil {
			return nil, err
		}
	}
	out.WriteString(end)
	return out.Bytes(), nil
}

// keep removes the entries of a mapping that are not wanted.
func keep(mapping *yaml.Node, wanted func(name string, value *yaml.Node) bool) {
	var content []*yaml.Node
	for entry := range slices.Chunk(mapping.Content, 2) {
		if wanted(entry[0].Value, entry[1]) {
			content = append(content, entry...)
		}
	}
	mapping.Content = content
}

// adapt names the gateway's stack in place of this one, and writes nested values over several lines.
func adapt(n *yaml.Node) {
	n.Value = strings.ReplaceAll(n.Value, "${AWS::StackName}", "${GatewayStack}")
	for _, inner := range n.Content {
		adapt(inner)
		if inner.Kind != yaml.ScalarNode && n.Tag != "!If" {
			n.Style &^= yaml.FlowStyle
		}
	}
}

func writeIndented(out *bytes.Buffer, entries *yaml.Node) error {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := cmp.Or(encoder.Encode(entries), encoder.Close()); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		out.WriteString(strings.TrimRight("  "+line, " \n") + "\n")
	}
	return nil
}

// listOutputs returns the outputs of the tables and secrets. template.yaml imports the exported ones. CloudFormation
// lets no update change an exported value while a stack imports it, so the ledger's stream is not exported: a restored
// table has another stream.
func listOutputs(resources *yaml.Node) string {
	var text strings.Builder
	export := func(name, description, value string) {
		fmt.Fprintf(&text, "  %s:\n    Description: %s\n    Value: %s\n", name, description, value)
		fmt.Fprintf(&text, "    Export: {Name: !Sub \"${AWS::StackName}-%s\"}\n", name)
	}
	for id, resource := range node.Entries(resources) {
		switch node.At(resource, "Type").Value {
		case "AWS::DynamoDB::Table":
			export(id, "Name of the table", "!Ref "+id)
			export(id+"Arn", "ARN of the table", "!GetAtt "+id+".Arn")
			if node.At(resource, "Properties", "StreamSpecification") != nil {
				text.WriteString("  LedgerStreamArn:\n    Description: The ledger's stream\n    Value: !GetAtt " + id +
					".StreamArn\n")
			}
		case "AWS::SecretsManager::Secret":
			export(id, "ARN of the secret", "!Ref "+id)
		}
	}
	return text.String()
}
