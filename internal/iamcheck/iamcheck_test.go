package iamcheck_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/iamcheck"
	"mobilegateway/internal/local/calls"
	"mobilegateway/internal/template"
)

// small is a template with one function, and what a test puts into its role.
const small = `
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

// services are the statements that AWS itself needs.
func services() []string {
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

// record is what OneFunction called.
func record(list ...string) []calls.Call {
	var made []calls.Call
	for _, one := range list {
		action, resource, _ := strings.Cut(one, " ")
		made = append(made, calls.Call{Function: "OneFunction", Action: action, Resource: resource})
	}
	return made
}

func parse(t *testing.T, statements ...string) *template.Template {
	t.Helper()
	var lines []string
	for _, statement := range statements {
		lines = append(lines, "              - "+statement)
	}
	parsed, err := template.Parse(fmt.Appendf(nil, small, strings.Join(lines, "\n")), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestCompare(t *testing.T) {
	all := append(services(), readItem, readIndex, readKeys)
	made := record("dynamodb:GetItem Ledger", "dynamodb:Query Ledger/index/due", "secretsmanager:GetSecretValue Keys")
	cases := map[string]struct {
		statements []string
		record     []calls.Call
		want       string
	}{
		"the same":                    {all, made, ""},
		"a call without a permission": {all, append(record("dynamodb:PutItem Ledger"), made...), "OneFunction dynamodb:PutItem Ledger is called"},
		"a call of another resource":  {all, append(record("dynamodb:Query Ledger"), made...), "OneFunction dynamodb:Query Ledger is called"},
		"a permission without a call": {all, made[1:], "OneFunction dynamodb:GetItem Ledger is allowed, and no call"},
		"a wildcard covers nothing": {
			append(services(), `{Effect: Allow, Action: "dynamodb:*", Resource: !GetAtt Ledger.Arn}`), nil,
			"OneFunction dynamodb:* Ledger is allowed, and no call",
		},
		"granted twice":                    {append(slices.Clone(all), readItem), made, "granted twice"},
		"no log":                           {all[1:], made, "OneFunction logs:PutLogEvents OneLog is not allowed"},
		"a service's permission is called": {all, append(record("dynamodb:GetRecords Ledger/stream"), made...), "our code calls it"},
		"a key's permission for ever": {
			append(append(slices.Clone(services()[:4]), all[5:]...), `{Effect: Allow, Action: "kms:Decrypt", Resource: !Ref KmsKeyArn}`), made,
			`is allowed when "", and needed when "HasKmsKey"`,
		},
		"a call's permission under a condition": {
			append(services(), readIndex, readKeys, `!If [Sometimes, `+readItem+`, !Ref AWS::NoValue]`), made, "only under a condition",
		},
		"another function's call": {all, append([]calls.Call{{Function: "Other", Action: "a", Resource: "b"}}, made...), "Other a b is called"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := iamcheck.Compare(parse(t, c.statements...), c.record)
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(fault string) bool { return strings.Contains(fault, c.want) }) {
				t.Errorf("want %q, got\n%s", c.want, strings.Join(got, "\n"))
			}
		})
	}
}

func TestRolesOfTheirOwn(t *testing.T) {
	shared := parse(t, services()...)
	shared.Functions = append(shared.Functions, shared.Functions[0])
	shared.Functions[1].LogicalID = "TwoFunction"
	if got := strings.Join(iamcheck.Compare(shared, nil), "\n"); !strings.Contains(got, "TwoFunction shares OneRole with OneFunction") {
		t.Error(got)
	}
	none := parse(t, services()...)
	none.Functions[0].Role = ""
	got := strings.Join(iamcheck.Compare(none, nil), "\n")
	if !strings.Contains(got, "OneFunction has no role") || !strings.Contains(got, "OneRole is no function's role") {
		t.Error(got)
	}
}

// TestTheDeployedRoles checks what needs no record: each role has what the services need, and no wildcard besides.
func TestTheDeployedRoles(t *testing.T) {
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
