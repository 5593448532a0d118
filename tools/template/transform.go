package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// python is the interpreter of SAM's environment, which has the transform that AWS runs too.
const python = ".local/tools/sam-cli/bin/python"

// transform prints the resources that SAM makes of a template for one value of Release. Code is not built for it.
const transform = `
import json, sys
from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

class NoPolicies:
    def load(self):
        return {}

with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file.read())
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        resource["Properties"]["CodeUri"] = "s3://bucket/key"
made = transform(template, {"Release": sys.argv[2], "AWS::Region": "eu-west-1"}, NoPolicies())
print(json.dumps(made["Resources"]))
`

// made is a resource after the transform.
type made struct {
	Type       string
	Properties map[string]any
}

// releases checks what SAM makes of the gradual template: two releases of one bundle are two versions of each function. It
// hangs on what SAM does with AutoPublishCodeSha256, which no lint sees; nor whether it hands on the API's security policy.
func releases(ctx context.Context, top, file string) ([]string, error) {
	var both [2]map[string]made
	for i, release := range [...]string{"2611211230", "2611211231"} {
		text, err := run(ctx, top, "env", "AWS_DEFAULT_REGION=eu-west-1", filepath.Join(top, python), "-c", transform, file, release)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &both[i]); err != nil {
			return nil, fmt.Errorf("what SAM makes of %s: %w", file, err)
		}
	}
	var found []string
	for _, fault := range compare(both[0], both[1]) {
		found = append(found, file+": "+fault)
	}
	return found, nil
}

// compare tells what two releases have in common and may not. Lambda makes a version only of a function that has changed:
// so the function differs too, not the version's name alone.
func compare(first, second map[string]made) []string {
	var found []string
	versions := 0
	for _, name := range slices.Sorted(maps.Keys(first)) {
		switch one := first[name]; one.Type {
		case "AWS::Lambda::Function":
			if reflect.DeepEqual(one, second[name]) {
				found = append(found, name+" is the same in two releases: Lambda publishes no version of it")
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(first)), func(other string) bool {
				return first[other].Type == "AWS::Lambda::Version" && strings.HasPrefix(other, name+"Version")
			}) {
				found = append(found, name+" has no version")
			}
			versions++
		case "AWS::ApiGateway::RestApi":
			if one.Properties["SecurityPolicy"] == nil || one.Properties["EndpointAccessMode"] == nil {
				found = append(found, name+" loses its security policy: by itself it takes TLS 1.0")
			}
		case "AWS::Lambda::Version":
			if _, again := second[name]; again {
				found = append(found, name+" is one version for two releases")
			}
		}
	}
	if versions == 0 {
		found = append(found, "there is no function")
	}
	return found
}
