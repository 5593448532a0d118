package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write testdata/deploy-calls.json")

// awsCall is an AWS call of make deploy, make rollback or make abort: of SAM, of the program, of the AWS CLI, or of
// CloudFormation with the caller's rights. tools/policies lets a simulator of IAM decide about it.
type awsCall struct {
	Action   string            `json:"action"`
	Resource string            `json:"resource"`
	Context  map[string]string `json:"context,omitempty"`
}

// The place that the record names.
const (
	recordedStack   = "mobile-gateway-staging"
	recordedAccount = "eu-west-1:123456789012"
	recordedBucket  = "arn:aws:s3:::bundles"
)

func stackARN(name string) string {
	return "arn:aws:cloudformation:" + recordedAccount + ":stack/" + name + "/1a2b3c"
}

// verbs returns the calls of the actions of a service on a resource.
func verbs(resource, service string, actions ...string) (calls []awsCall) {
	for _, action := range actions {
		calls = append(calls, awsCall{Action: service + ":" + action, Resource: resource})
	}
	return calls
}

// samCalls returns what SAM itself calls for one of its command lines (samcli/lib/deploy, lib/package, lib/list).
func samCalls(t *testing.T, line string) []awsCall {
	t.Helper()
	words := strings.Fields(line)
	option := func(name string) string {
		if i := slices.Index(words, name); i >= 0 {
			return words[i+1]
		}
		return ""
	}
	stack := option("--stack-name")
	if stack == "" {
		stack = recordedStack // that of samconfig.toml
	}
	switch words[0] {
	case "build":
		return nil
	case "list":
		return verbs(stackARN(stack), "cloudformation", "DescribeStacks")
	case "deploy":
		config, err := readConfig(checkout, deployOptions{environment: "staging"})
		if err != nil {
			t.Fatal(err)
		}
		prefix, _ := nestedValue(config.file, config.section, "deploy", "parameters", "s3_prefix").(string)
		found := verbs(stackARN(stack), "cloudformation", "DescribeStacks", "CreateChangeSet", "DescribeChangeSet",
			"ExecuteChangeSet", "DescribeStackEvents", "GetTemplateSummary")
		found = append(found, verbs(stackARN("aws-sam-cli-managed-default"), "cloudformation", "DescribeStacks")...)
		found = append(found, verbs(recordedBucket, "s3", "ListBucket")...)
		found = append(found, verbs(recordedBucket+"/"+strings.TrimPrefix(prefix+"/0a1b2c3d", "/"), "s3", "GetObject",
			"PutObject")...)
		return found // the simulator does not know the transform of SAM as a resource
	}
	t.Fatalf("SAM was called with %q: add its calls to samCalls", line)
	return nil
}

// ownCalls are those of the program and of the AWS CLI: preflight, protection of the data, rollback and abort.
func ownCalls() (calls []awsCall) {
	data := recordedStack + dataStackSuffix
	function := "arn:aws:lambda:" + recordedAccount + ":function:" + recordedStack + "-PayFunction-1A2B"
	application := "arn:aws:codedeploy:" + recordedAccount + ":application:" + recordedStack + "-Serverless-1A2B"
	group := "arn:aws:codedeploy:" + recordedAccount + ":deploymentgroup:" + recordedStack + "-Serverless-1A2B/" +
		recordedStack + "-Pay-1A2B"
	for _, more := range [][]awsCall{
		verbs("*", "lambda", "GetAccountSettings"),
		verbs("arn:aws:apigateway:eu-west-1::/account", "apigateway", "GET"),
		verbs(stackARN(recordedStack), "cloudformation", "DescribeStackResources", "ListStackResources",
			"CancelUpdateStack"),
		verbs(stackARN(data), "cloudformation", "UpdateTerminationProtection", "SetStackPolicy"),
		verbs(function, "lambda", "GetAlias", "ListVersionsByFunction", "UpdateAlias"),
		verbs(application, "codedeploy", "ListDeploymentGroups"),
		verbs(group, "codedeploy", "ListDeployments"),
		verbs("*", "codedeploy", "StopDeployment"),
		{{"lambda:CreateEventSourceMapping", "*", map[string]string{"lambda:FunctionArn": function}}},
	} {
		calls = append(calls, more...)
	}
	return calls
}

// resourceKind is what CloudFormation calls for the resources of a type, by the handlers of AWS's resource providers,
// without the features that the templates do not use. In resource, NAME is the physical name that CloudFormation makes.
type resourceKind struct {
	resource, service string
	actions           []string
}

// resourceKinds has each type of a resource that a deployment without optional parts makes. A type may have several.
var resourceKinds = map[string][]resourceKind{
	"AWS::Serverless::Api": {
		{"arn:aws:apigateway:eu-west-1::/restapis", "apigateway", []string{"POST"}},
		{"arn:aws:apigateway:eu-west-1::/restapis/1a2b", "apigateway", []string{"GET", "PUT", "PATCH", "DELETE"}},
		{"arn:aws:apigateway:eu-west-1::/restapis/1a2b/stages/s", "apigateway", []string{"GET", "PATCH", "DELETE"}},
		{"arn:aws:apigateway:eu-west-1::/restapis/1a2b/deployments", "apigateway", []string{"GET"}},
	},
	"AWS::Serverless::Function": {
		{"arn:aws:lambda:" + recordedAccount + ":function:NAME", "lambda", []string{
			"CreateFunction", "GetFunction", "UpdateFunctionCode", "UpdateFunctionConfiguration", "TagResource",
			"PutFunctionConcurrency", "DeleteFunctionConcurrency", "GetFunctionRecursionConfig",
			"GetFunctionCodeSigningConfig", "PutFunctionEventInvokeConfig", "PublishVersion", "CreateAlias", "GetAlias",
			"UpdateAlias", "AddPermission", "RemovePermission", "GetPolicy",
		}},
		{"arn:aws:lambda:" + recordedAccount + ":event-source-mapping:1a2b", "lambda", []string{
			"GetEventSourceMapping", "UpdateEventSourceMapping",
		}},
		{"arn:aws:events:" + recordedAccount + ":rule/NAME", "events", []string{
			"PutRule", "DescribeRule", "PutTargets", "RemoveTargets", "DeleteRule",
		}},
		{"arn:aws:codedeploy:" + recordedAccount + ":application:NAME", "codedeploy", []string{
			"CreateApplication", "GetApplication", "RegisterApplicationRevision",
		}},
		{"arn:aws:codedeploy:" + recordedAccount + ":deploymentgroup:NAME/NAME", "codedeploy", []string{
			"CreateDeploymentGroup", "GetDeploymentGroup", "UpdateDeploymentGroup", "CreateDeployment", "GetDeployment",
		}},
		{"arn:aws:codedeploy:" + recordedAccount + ":deploymentconfig:CodeDeployDefault.LambdaCanary10Percent15Minutes",
			"codedeploy", []string{"GetDeploymentConfig"}},
	},
	"AWS::IAM::Role": {
		{"arn:aws:iam::123456789012:role/NAME", "iam", []string{
			"CreateRole", "GetRole", "PutRolePolicy", "GetRolePolicy", "DeleteRolePolicy", "ListRolePolicies",
			"ListAttachedRolePolicies", "UpdateRole", "UpdateRoleDescription", "UpdateAssumeRolePolicy", "DeleteRole",
		}},
	},
	"AWS::DynamoDB::Table": {
		{"arn:aws:dynamodb:" + recordedAccount + ":table/NAME", "dynamodb", []string{
			"CreateTable", "DescribeTable", "UpdateTable", "DescribeTimeToLive", "UpdateTimeToLive", "TagResource",
			"DescribeContinuousBackups", "UpdateContinuousBackups", "DescribeContributorInsights", "ListTagsOfResource",
		}},
	},
	"AWS::SecretsManager::Secret": {
		{"arn:aws:secretsmanager:" + recordedAccount + ":secret:" + recordedStack + "/operators-1A2B3C",
			"secretsmanager", []string{"CreateSecret", "DescribeSecret", "TagResource"}},
	},
	"AWS::Logs::LogGroup": {
		{"arn:aws:logs:" + recordedAccount + ":log-group:/" + recordedStack + "/pay", "logs", []string{
			"CreateLogGroup", "PutRetentionPolicy", "TagResource", "ListTagsForResource",
		}},
		{"*", "logs", []string{"DescribeLogGroups"}},
	},
	"AWS::Logs::LogStream": {
		{"arn:aws:logs:" + recordedAccount + ":log-group:/" + recordedStack + "/audit", "logs",
			[]string{"DescribeLogStreams"}},
		{"arn:aws:logs:" + recordedAccount + ":log-group:/" + recordedStack + "/audit:log-stream:audit", "logs",
			[]string{"CreateLogStream"}},
	},
	"AWS::CloudWatch::Alarm": {
		{"arn:aws:cloudwatch:" + recordedAccount + ":alarm:NAME", "cloudwatch", []string{
			"PutMetricAlarm", "DescribeAlarms", "DeleteAlarms",
		}},
	},
	"AWS::CloudWatch::Dashboard": {
		{"arn:aws:cloudwatch::123456789012:dashboard/" + recordedStack + "-eu-west-1", "cloudwatch", []string{
			"PutDashboard", "GetDashboard", "DeleteDashboards",
		}},
	},
}

// optional are the conditions of what the role of deploy/pipeline.yaml has no rights to, as docs/deploy.md says.
var optional = []string{"HasDomain", "HasOperatorDomain", "HasWebAcl", "HasVpc"}

// stackCalls returns what CloudFormation calls for the resources of a template in a stack, for one of each type: the
// names of the others begin alike.
func stackCalls(t *testing.T, name, stack string) (calls []awsCall) {
	t.Helper()
	var template struct {
		Resources map[string]struct {
			Type      string `yaml:"Type"`
			Condition string `yaml:"Condition"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(read(t, name), &template); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(template.Resources)) {
		resource := template.Resources[id]
		kinds := resourceKinds[resource.Type]
		if slices.Contains(optional, resource.Condition) || seen[resource.Type] {
			continue
		}
		seen[resource.Type] = true
		if kinds == nil {
			t.Errorf("%s: add the calls of %s to resourceKinds", name, resource.Type)
		}
		for _, kind := range kinds {
			place := strings.ReplaceAll(kind.resource, "NAME", stack+"-"+id+"-1A2B3C")
			calls = append(calls, verbs(place, kind.service, kind.actions...)...)
			if resource.Type != "AWS::IAM::Role" {
				continue
			}
			calls = append(calls, awsCall{"iam:PassRole", place,
				map[string]string{"iam:PassedToService": "lambda.amazonaws.com"}})
		}
	}
	deployRole := "arn:aws:iam::123456789012:role/" + stack + "-CodeDeployServiceRole-1A2B3C"
	if name == "template.yaml" { // SAM adds it for a gradual deployment
		calls = append(calls,
			awsCall{"iam:PassRole", deployRole, map[string]string{"iam:PassedToService": "codedeploy.amazonaws.com"}},
			awsCall{"iam:AttachRolePolicy", deployRole, map[string]string{
				"iam:PolicyARN": "arn:aws:iam::aws:policy/service-role/AWSCodeDeployRoleForLambda"}})
	}
	return calls
}

// TestDeployCalls records the calls of a gradual deployment with a data stack, by the command lines of SAM.
func TestDeployCalls(t *testing.T) {
	r := newTrace(t)
	data := recordedStack + dataStackSuffix
	if err := r.run(t, "", "-env", "staging", "-yes=1", "-gradual=1", "DataStack="+data); err != nil {
		t.Fatal(err)
	}
	lines := r.calls(t)
	for _, more := range []string{".alarms", ".list"} {
		text, err := os.ReadFile(r.log + more)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	calls := ownCalls()
	stacks := map[string]string{} // by the template
	for _, line := range lines {
		calls = append(calls, samCalls(t, line)...)
		for name, stack := range map[string]string{
			"build/template.yaml": recordedStack, "data.yaml": data, "alarms.yaml": recordedStack + "-alarms",
		} {
			if strings.HasPrefix(line, "deploy ") && strings.Contains(line, name+" ") {
				stacks[name] = stack
			}
		}
	}
	if len(stacks) != 3 {
		t.Fatalf("SAM deployed %v, want three stacks: %q", stacks, lines)
	}
	calls = append(calls, stackCalls(t, "template.yaml", recordedStack)...)
	calls = append(calls, stackCalls(t, "deploy/data.yaml", data)...)
	calls = append(calls, stackCalls(t, "deploy/alarms.yaml", recordedStack+"-alarms")...)

	texts := map[string]awsCall{}
	for _, call := range calls {
		text, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		texts[string(text)] = call
	}
	var got bytes.Buffer
	sorted := slices.Sorted(maps.Keys(texts))
	got.WriteString("[\n" + strings.Join(sorted, ",\n") + "\n]\n")
	path := filepath.Join("testdata", "deploy-calls.json")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(want, got.Bytes()) {
		t.Errorf("%s differs from what make deploy calls (%v): run go test ./deploy -run TestDeployCalls -update, and "+
			"make policies", path, err)
	}
}
