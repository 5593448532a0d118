package iamcheck_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/iamcheck"
	"mobilegateway/world/awscalls"
	"mobilegateway/world/template/roles"
)

// minimalTemplate has one function; a test fills in its role's statements.
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

// requiredByServices returns the statements that AWS itself needs.
func requiredByServices() []string {
	return []string{
		`{Effect: Allow, Action: ["logs:CreateLogStream", "logs:PutLogEvents"], Resource: !GetAtt OneLog.Arn}`,
		`{Effect: Allow, Action: ["xray:PutTraceSegments", "xray:PutTelemetryRecords"], Resource: "*"}`,
		`{Effect: Allow, Action: ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], ` +
			`Resource: !GetAtt Ledger.StreamArn}`,
		`{Effect: Allow, Action: "dynamodb:ListStreams", Resource: !Sub "${Ledger.Arn}/stream/*"}`,
		`!If [HasKmsKey, {Effect: Allow, Action: "kms:Decrypt", Resource: !Ref KmsKeyArn, ` + viaService + `}, ` +
			`!Ref AWS::NoValue]`,
	}
}

const (
	viaService = `Condition: {StringEquals: {"kms:ViaService": [!Sub "dynamodb.${AWS::Region}.amazonaws.com", ` +
		`!Sub "secretsmanager.${AWS::Region}.amazonaws.com"]}}`
	readItem = `{Effect: Allow, Action: "dynamodb:GetItem", Resource: !GetAtt Ledger.Arn, ` +
		`Condition: {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["pay#*", "sms#*"]}}}`
	readAny   = `{Effect: Allow, Action: "dynamodb:GetItem", Resource: !GetAtt Ledger.Arn}`
	readIndex = `{Effect: Allow, Action: "dynamodb:Query", Resource: !Sub "${Ledger.Arn}/index/due"}`
	readKeys  = `{Effect: Allow, Action: "secretsmanager:GetSecretValue", Resource: !Ref Keys}`
)

// parseCalls returns calls of OneFunction.
func parseCalls(list ...string) []awscalls.Call {
	var called []awscalls.Call
	for _, one := range list {
		parts := append(strings.Fields(one), "")
		call := awscalls.Call{Function: "OneFunction", Action: parts[0], Resource: parts[1], Kind: parts[2]}
		called = append(called, call)
	}
	return called
}

func parseTemplate(t *testing.T, statements ...string) *roles.Template {
	t.Helper()
	var lines []string
	for _, statement := range statements {
		lines = append(lines, "              - "+statement)
	}
	parsed, err := roles.Parse(fmt.Appendf(nil, minimalTemplate, strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestCompare(t *testing.T) {
	all := append(requiredByServices(), readItem, readIndex, readKeys)
	called := parseCalls("dynamodb:GetItem Ledger pay", "dynamodb:GetItem Ledger sms",
		"dynamodb:Query Ledger/index/due", "secretsmanager:GetSecretValue Keys")
	and := func(one string) []awscalls.Call { return append(parseCalls(one), called...) }
	other := awscalls.Call{Function: "Other", Action: "a", Resource: "b"}
	wildcard := `{Effect: Allow, Action: "dynamodb:*", Resource: !GetAtt Ledger.Arn}`
	alwaysDecrypt := append(append(slices.Clone(requiredByServices()[:4]), all[5:]...),
		`{Effect: Allow, Action: "kms:Decrypt", Resource: !Ref KmsKeyArn, `+viaService+`}`)
	anyService := append(append(slices.Clone(requiredByServices()[:4]), all[5:]...),
		`!If [HasKmsKey, {Effect: Allow, Action: "kms:Decrypt", Resource: !Ref KmsKeyArn}, !Ref AWS::NoValue]`)
	readSometimes := append(requiredByServices(), readIndex, readKeys,
		`!If [Sometimes, `+readItem+`, !Ref AWS::NoValue]`)
	cases := map[string]struct {
		statements []string
		record     []awscalls.Call
		want       string
	}{
		"the same":                    {all, called, ""},
		"a call without a permission": {all, and("dynamodb:PutItem Ledger"), "dynamodb:PutItem Ledger is called"},
		"a call of another resource":  {all, and("dynamodb:Query Ledger"), "dynamodb:Query Ledger is called"},
		"a permission without a call": {all, called[1:], "dynamodb:GetItem Ledger pay is allowed, but no call"},
		"a call of another kind":      {all, and("dynamodb:GetItem Ledger charge"), "GetItem Ledger charge is called"},
		"a call of no kind":           {all, and("dynamodb:GetItem Ledger"), "dynamodb:GetItem Ledger is called"},
		"a permission for every kind": {
			append(requiredByServices(), readAny, readIndex, readKeys), called, "Ledger is allowed, but no call",
		},
		"a key's permission for every service": {
			anyService, called, `under the condition "HasKmsKey", but needed under "HasKmsKey StringEquals kms`,
		},
		"a wildcard": {
			append(requiredByServices(), wildcard), nil, "OneFunction dynamodb:* Ledger is allowed, but no call",
		},
		"granted twice":                    {append(slices.Clone(all), readItem), called, "granted twice"},
		"no log":                           {all[1:], called, "OneFunction logs:PutLogEvents OneLog is not allowed"},
		"a service's permission is called": {all, and("dynamodb:GetRecords Ledger/stream"), "but a function calls it"},
		"a key's permission without its condition": {
			alwaysDecrypt, called, `but needed under "HasKmsKey StringEquals kms:ViaService`,
		},
		"a call's permission under a condition": {readSometimes, called, "only allowed under a condition"},
		"another function's call":               {all, append(called, other), "Other a b is called"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := iamcheck.Compare(parseTemplate(t, c.statements...), c.record)
			if c.want == "" && len(got) > 0 {
				t.Errorf("Compare found differences:\n%s", strings.Join(got, "\n"))
			}
			if faults := strings.Join(got, "\n"); !strings.Contains(faults, c.want) {
				t.Errorf("Compare found\n%s\nwant %q", faults, c.want)
			}
		})
	}
}

func TestOwnRoles(t *testing.T) {
	shared := parseTemplate(t, requiredByServices()...)
	shared.Functions = append(shared.Functions, shared.Functions[0])
	shared.Functions[1].LogicalID = "TwoFunction"
	wantFault(t, shared, "TwoFunction shares OneRole with OneFunction")
	none := parseTemplate(t, requiredByServices()...)
	none.Functions[0].Role = ""
	wantFault(t, none, "OneFunction has no role")
	wantFault(t, none, "OneRole is not the role of a function")
}

// wantFault checks that Compare finds a fault in a template.
func wantFault(t *testing.T, in *roles.Template, want string) {
	t.Helper()
	if faults := strings.Join(iamcheck.Compare(in, nil), "\n"); !strings.Contains(faults, want) {
		t.Errorf("Compare found\n%s\nwant %q", faults, want)
	}
}

// TestDeployedTemplateHasOwnRoles checks without a record: each role has the services' permissions and no other
// wildcard.
func TestDeployedTemplateHasOwnRoles(t *testing.T) {
	deployed, err := roles.Load(filepath.Join("..", "..", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range iamcheck.Compare(deployed, nil) {
		if !strings.Contains(fault, " is allowed, but no call needs it") || strings.Contains(fault, "*") {
			t.Error(fault)
		}
	}
}
