package main

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestTemplateLengths checks that a person can still read each template.
func TestTemplateLengths(t *testing.T) {
	for name, most := range map[string]int{
		"template.yaml": 1250, "deploy/data.yaml": 700, "deploy/account.yaml": 700, "deploy/alarms.yaml": 700,
		"deploy/backup.yaml": 700, "deploy/egress.yaml": 700, "deploy/pipeline.yaml": 700, "deploy/sandbox.yaml": 700,
		"deploy/waf.yaml": 700,
	} {
		if lines := strings.Count(string(read(t, name)), "\n"); lines > most {
			t.Errorf("%s has %d lines, want at most %d", name, lines, most)
		}
	}
}

// TestEgressOutputs checks that the outputs of deploy/egress.yaml have the names of the parameters that take them.
func TestEgressOutputs(t *testing.T) {
	var egress yaml.Node
	if err := yaml.Unmarshal(read(t, "deploy/egress.yaml"), &egress); err != nil {
		t.Fatal(err)
	}
	known := mustReadTemplate(t)
	for _, name := range []string{"VpcSubnetIds", "VpcSecurityGroupIds"} {
		if mappingValue(&egress, "Outputs", name) == nil {
			t.Errorf("egress.yaml has no output %s", name)
		}
		if err := known.checkParameter(name, ""); err != nil {
			t.Errorf("the functions cannot stay outside of a network: %v", err)
		}
	}
}

// TestPipelineTrust checks that only jobs of one environment of the repository get the role of deploy/pipeline.yaml.
func TestPipelineTrust(t *testing.T) {
	var pipeline yaml.Node
	if err := yaml.Unmarshal(read(t, "deploy/pipeline.yaml"), &pipeline); err != nil {
		t.Fatal(err)
	}
	trust := mappingValue(&pipeline, "Resources", "DeployRole", "Properties", "AssumeRolePolicyDocument", "Statement")
	if len(trust.Content) != 1 {
		t.Fatalf("%d statements of trust, want one", len(trust.Content))
	}
	conditions := mappingValue(trust.Content[0], "Condition")
	for key, want := range map[string]string{
		"aud": "sts.amazonaws.com", "sub": "repo:${Repository}:environment:${Environment}",
	} {
		got := mappingValue(conditions, "StringEquals", "token.actions.githubusercontent.com:"+key)
		if got == nil || got.Value != want {
			t.Errorf("the trust does not need %s to be %s", key, want)
		}
	}
}

// regionWide are the resources of deploy/pipeline.yaml that have no stack's name: AWS chooses theirs.
var regionWide = []string{":event-source-mapping:*", "::/restapis*", "::/domainnames*",
	":aws:transform/Serverless-2016-10-31", ":stack/aws-sam-cli-managed-default/*", ":s3:::${BundleBucket}",
	"::/account", ":deploymentconfig:CodeDeploy*"}

// withoutResource are the actions for which IAM has no resource.
var withoutResource = []string{"logs:DescribeLogGroups", "codedeploy:StopDeployment"}

// TestPipelineRights checks that each right to change something ends at the names of the stack.
func TestPipelineRights(t *testing.T) {
	var pipeline yaml.Node
	if err := yaml.Unmarshal(read(t, "deploy/pipeline.yaml"), &pipeline); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"StackPolicy", "ServicePolicy", "RolePolicy"} {
		for _, statement := range mappingValue(&pipeline, "Resources", policy, "Properties", "PolicyDocument",
			"Statement").Content {
			resources, actions := scalars(mappingValue(statement, "Resource")),
				scalars(mappingValue(statement, "Action"))
			for _, resource := range resources {
				wide := slices.ContainsFunc(regionWide,
					func(end string) bool { return strings.HasSuffix(resource, end) })
				reads := resource == "*" && !slices.ContainsFunc(actions, func(action string) bool {
					return changes(action) && !slices.Contains(withoutResource, action)
				})
				if of := mappingValue(statement, "Condition", "ArnLike", "lambda:FunctionArn"); of != nil {
					resource = of.Value
				}
				if !strings.Contains(resource, "${GatewayStack}") && !wide && !reads {
					t.Errorf("%s: %v on %s", policy, actions, resource)
				}
			}
			if slices.Contains(actions, "*") || len(resources) == 0 {
				t.Errorf("%s: %v on %v", policy, actions, resources)
			}
		}
	}
}

// changes reports whether an action may change something.
func changes(action string) bool {
	_, verb, _ := strings.Cut(action, ":")
	return !strings.HasPrefix(verb, "Get") && !strings.HasPrefix(verb, "Describe") &&
		!strings.HasPrefix(verb, "Validate")
}

// scalars returns the texts of a scalar or a list.
func scalars(at *yaml.Node) []string {
	if at.Kind == yaml.ScalarNode {
		return []string{at.Value}
	}
	var found []string
	for _, item := range at.Content {
		found = append(found, item.Value)
	}
	return found
}
