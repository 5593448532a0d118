package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template/node"
)

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDataStackIsCurrent compares deploy/data.yaml with the data resources of template.yaml.
func TestDataStackIsCurrent(t *testing.T) {
	want, err := generate(readFile(t, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, "deploy/data.yaml"), want) {
		t.Error("deploy/data.yaml is not what template.yaml has: run go generate ./deploy/datastack")
	}
}

// TestDataResourcesAreElsewhere: every table, secret and log group of template.yaml is in data.yaml, with the same
// properties except for the name of the stack. template.yaml makes none of them if it has a data stack.
func TestDataResourcesAreElsewhere(t *testing.T) {
	kept := []string{"AWS::DynamoDB::Table", "AWS::SecretsManager::Secret", "AWS::Logs::LogGroup",
		"AWS::Logs::LogStream"}
	var own, data struct {
		Resources map[string]map[string]yaml.Node `yaml:"Resources"`
	}
	for name, into := range map[string]any{"template.yaml": &own, "deploy/data.yaml": &data} {
		if err := node.Decode(readFile(t, name), into); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for id, resource := range own.Resources {
		if !slices.Contains(kept, resource["Type"].Value) {
			continue
		}
		found++
		if resource["Condition"].Value != node.MakesData {
			t.Errorf("template.yaml makes %s beside a data stack", id)
		}
		for key, value := range resource {
			got := data.Resources[id][key]
			if key != "Condition" && plain(&got) != strings.ReplaceAll(plain(&value), "AWS::StackName",
				"GatewayStack") {
				t.Errorf("%s of %s is %s, in template.yaml %s", key, id, plain(&got), plain(&value))
			}
		}
	}
	if found != len(data.Resources) || found < 20 {
		t.Errorf("template.yaml has %d resources with data, deploy/data.yaml %d", found, len(data.Resources))
	}
}

// plain writes the tags and values of a node and of all below it.
func plain(n *yaml.Node) string {
	text := n.Tag + n.Value
	for _, inner := range n.Content {
		text += " (" + plain(inner) + ")"
	}
	return text
}

// TestImportsAreExported: template.yaml imports exactly what data.yaml exports.
func TestImportsAreExported(t *testing.T) {
	names := func(file, pattern string) []string {
		var found []string
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(readFile(t, file), -1) {
			found = append(found, string(match[1]))
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	imported := names("template.yaml", `"Fn::ImportValue": !Sub "\$\{DataStack\}-(\w+)"`)
	exported := names("deploy/data.yaml", `Export: \{Name: !Sub "\$\{AWS::StackName\}-(\w+)"\}`)
	if !slices.Equal(imported, exported) || len(imported) != 11 {
		t.Errorf("template.yaml imports %q, data.yaml exports %q", imported, exported)
	}
}

// TestMove checks the files of an import: nine resources, each with the identifier that CloudFormation wants, by the
// outputs of the deleted stack. A stack without one of them is named.
func TestMove(t *testing.T) {
	folder := t.TempDir()
	outputs := filepath.Join(folder, "stack.env")
	lines := "LedgerTable=s-LedgerTable-1\nMerchantTable=s-MerchantTable-1\nAuditLogGroup=/s/audit\n"
	for _, secret := range []string{"OperatorSecret", "TokenKeySecret", "TokenPublicKeySecret", "CallbackKeySecret"} {
		lines += secret + "=arn:" + secret + "\n"
	}
	write := func(text string) error {
		if err := os.WriteFile(outputs, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return writeMove(readFile(t, "template.yaml"), outputs, folder)
	}
	if err := write(lines); err == nil || !strings.Contains(err.Error(), "no value of WebhookKeySecret") {
		t.Errorf("without a secret: %v", err)
	}
	if err := write(lines + "WebhookKeySecret=arn:WebhookKeySecret\n"); err != nil {
		t.Fatal(err)
	}
	var list []imported
	text, err := os.ReadFile(filepath.Join(folder, "move.json"))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	identifiers := map[string]map[string]string{}
	for _, resource := range list {
		identifiers[resource.LogicalResourceID] = resource.ResourceIdentifier
	}
	want := map[string]map[string]string{
		"LedgerTable": {"TableName": "s-LedgerTable-1"}, "MerchantTable": {"TableName": "s-MerchantTable-1"},
		"OperatorSecret": {"Id": "arn:OperatorSecret"}, "TokenKeySecret": {"Id": "arn:TokenKeySecret"},
		"TokenPublicKeySecret": {"Id": "arn:TokenPublicKeySecret"},
		"CallbackKeySecret":    {"Id": "arn:CallbackKeySecret"}, "WebhookKeySecret": {"Id": "arn:WebhookKeySecret"},
		"AuditLogGroup":  {"LogGroupName": "/s/audit"},
		"AuditLogStream": {"LogGroupName": "/s/audit", "LogStreamName": "audit"},
	}
	if diff := cmp.Diff(want, identifiers); diff != "" {
		t.Errorf("identifiers (-want +got):\n%s", diff)
	}
	var template struct {
		Resources map[string]yaml.Node `yaml:"Resources"`
		Outputs   map[string]yaml.Node `yaml:"Outputs"`
	}
	if text, err = os.ReadFile(filepath.Join(folder, "move.yaml")); err == nil {
		err = node.Decode(text, &template)
	}
	if err != nil || len(template.Resources) != len(want) || len(template.Outputs) > 0 {
		t.Errorf("%d resources and %d outputs: %v", len(template.Resources), len(template.Outputs), err)
	}
}
