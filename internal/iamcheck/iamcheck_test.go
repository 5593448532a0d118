package iamcheck_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/iamcheck"
	"mobilegateway/internal/local/awscalls"
	"mobilegateway/internal/template"
)

// minimalTemplate is a template with one function, and what a test puts into its role.
const minimalTemplate = `
Resources:
  OneFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/one/bootstrap/
      Role: !GetAtt OneRole.Arn
      LoggingConfig: {LogGroup: !Ref OneLog}
      Events:
        Stream: {Type: DynamoDB, Properties: {Stream: !GetAtt Ledger.StreamArn}}
  OneRole:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyDocument:
            Statement:
%s
  OneLog: {Type: AWS::Logs::LogGroup}
  Ledger: {Type: AWS::DynamoDB::Table, Properties: {}}
  Keys: {Type: AWS::SecretsManager::Secret}
`

// requiredByServices are the statements that AWS itself needs.
func requiredByServices() []string {
	return []string{
		`{Effect: Allow, Action: ["logs:CreateLogStream", "logs:PutLogEvents"], Resource: !GetAtt OneLog.Arn}`,
		`{Effect: Allow, Action: ["xray:PutTraceSegments", "xray:PutTelemetryRecords"], Resource: "*"}`,
		`{Effect: Allow, Action: ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], Resource: !GetAtt Ledger.StreamArn}`,
		`{Effect: Allow, Action: "dynamodb:ListStreams", Resource: !Sub "${Ledger.Arn}/stream/*"}`,
		`!If [HasKmsKey, {Effect: Allow, Action: "kms:Decrypt", Resource: !Ref KmsKeyArn}, !Ref AWS::NoValue]`,
	}
}

const (
	readItem  = `{Effect: Allow, Action: "dynamodb:GetItem", Resource: !GetAtt Ledger.Arn}`
	readIndex = `{Effect: Allow, Action: "dynamodb:Query", Resource: !Sub "${Ledger.Arn}/index/due"}`
	readKeys  = `{Effect: Allow, Action: "secretsmanager:GetSecretValue", Resource: !Ref Keys}`
)

// parseCalls is what OneFunction called.
func parseCalls(list ...string) []awscalls.Call {
	var called []awscalls.Call
	for _, one := range list {
		action, resource, _ := strings.Cut(one, " ")
		called = append(called, awscalls.Call{Function: "OneFunction", Action: action, Resource: resource})
	}
	return called
}

func parseTemplate(t *testing.T, statements ...string) *template.Template {
	t.Helper()
	var lines []string
	for _, statement := range statements {
		lines = append(lines, "              - "+statement)
	}
	parsed, err := template.Parse(fmt.Appendf(nil, minimalTemplate, strings.Join(lines, "\n")), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestCompare(t *testing.T) {
	all := append(requiredByServices(), readItem, readIndex, readKeys)
	called := parseCalls("dynamodb:GetItem Ledger", "dynamodb:Query Ledger/index/due", "secretsmanager:GetSecretValue Keys")
	cases := map[string]struct {
		statements []string
		record     []awscalls.Call
		want       string
	}{
		"the same":                    {all, called, ""},
		"a call without a permission": {all, append(parseCalls("dynamodb:PutItem Ledger"), called...), "OneFunction dynamodb:PutItem Ledger is called"},
		"a call of another resource":  {all, append(parseCalls("dynamodb:Query Ledger"), called...), "OneFunction dynamodb:Query Ledger is called"},
		"a permission without a call": {all, called[1:], "OneFunction dynamodb:GetItem Ledger is allowed, and no call"},
		"a wildcard covers nothing": {
			append(requiredByServices(), `{Effect: Allow, Action: "dynamodb:*", Resource: !GetAtt Ledger.Arn}`), nil,
			"OneFunction dynamodb:* Ledger is allowed, and no call",
		},
		"granted twice":                    {append(slices.Clone(all), readItem), called, "granted twice"},
		"no log":                           {all[1:], called, "OneFunction logs:PutLogEvents OneLog is not allowed"},
		"a service's permission is called": {all, append(parseCalls("dynamodb:GetRecords Ledger/stream"), called...), "our code calls it"},
		"a key's permission for ever": {
			append(append(slices.Clone(requiredByServices()[:4]), all[5:]...), `{Effect: Allow, Action: "kms:Decrypt", Resource: !Ref KmsKeyArn}`), called,
			`is allowed when "", and needed when "HasKmsKey"`,
		},
		"a call's permission under a condition": {
			append(requiredByServices(), readIndex, readKeys, `!If [Sometimes, `+readItem+`, !Ref AWS::NoValue]`), called, "only under a condition",
		},
		"another function's call": {all, append([]awscalls.Call{{Function: "Other", Action: "a", Resource: "b"}}, called...), "Other a b is called"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := iamcheck.Compare(parseTemplate(t, c.statements...), c.record)
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(fault string) bool { return strings.Contains(fault, c.want) }) {
				t.Errorf("want %q, got\n%s", c.want, strings.Join(got, "\n"))
			}
		})
	}
}

func TestOwnRoles(t *testing.T) {
	shared := parseTemplate(t, requiredByServices()...)
	shared.Functions = append(shared.Functions, shared.Functions[0])
	shared.Functions[1].LogicalID = "TwoFunction"
	if got := strings.Join(iamcheck.Compare(shared, nil), "\n"); !strings.Contains(got, "TwoFunction shares OneRole with OneFunction") {
		t.Error(got)
	}
	none := parseTemplate(t, requiredByServices()...)
	none.Functions[0].Role = ""
	got := strings.Join(iamcheck.Compare(none, nil), "\n")
	if !strings.Contains(got, "OneFunction has no role") || !strings.Contains(got, "OneRole is no function's role") {
		t.Error(got)
	}
}

// TestDeployedTemplateHasOwnRoles checks what needs no record: each role has what the services need, and no wildcard besides.
func TestDeployedTemplateHasOwnRoles(t *testing.T) {
	deployed, err := template.Load(filepath.Join("..", "..", "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range iamcheck.Compare(deployed, nil) {
		if !strings.Contains(fault, " is allowed, and no call needs it") || strings.Contains(fault, "*") {
			t.Error(fault)
		}
	}
}
