// Command datastack writes deploy/data.yaml, by `go generate ./deploy/datastack`. It has the resources that
// template.yaml makes only without a data stack.
//
// So the tables, secrets and log groups are the same in both forms of a deployment.
package main

import (
	"bytes"
	"cmp"
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
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "datastack:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := repository.Root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		return err
	}
	if text, err = generate(text); err != nil {
		return fmt.Errorf("template.yaml: %w", err)
	}
	return file.Replace(filepath.Join(root, "deploy", "data.yaml"), text)
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
func generate(text []byte) ([]byte, error) {
	var d document
	if err := node.Decode(text, &d); err != nil {
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
	outputs := listOutputs(&d.Resources)
	for _, resource := range node.Entries(&d.Resources) {
		keep(resource, func(name string, _ *yaml.Node) bool { return name != "Condition" })
		adapt(resource)
	}
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
	out.WriteString("\nOutputs:\n" + outputs)
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
