package roles_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/world/template/roles"
)

// roleTemplate is a template without the properties of its role.
const roleTemplate = `
Resources:
  OneFunction:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: functions/one/bootstrap/, Role: !GetAtt OneRole.Arn, LoggingConfig: {LogGroup: !Ref Log}}
  OneRole:
    Type: AWS::IAM::Role
    Properties: %s
`

func TestRoles(t *testing.T) {
	parsed, err := roles.Parse(fmt.Appendf(nil, roleTemplate, `{Policies: [{PolicyDocument: {Statement: [
	  {Effect: Allow, Action: [a:A, a:B],
	   Resource: [!GetAtt T.Arn, !GetAtt T.StreamArn, !Sub "${T.Arn}/index/due", !Ref S]},
	  !If [Sometimes,
	    {Sid: x, Effect: Allow, Action: k:D, Resource: !Ref Key, Condition: {StringEquals: {a: b}}}, !Ref AWS::NoValue],
	  {Effect: Allow, Action: y:S, Resource: !If [Sometimes, !Ref Other, !GetAtt T.StreamArn]},
	  {Effect: Allow, Action: g:I, Resource: !GetAtt T.Arn,
	   Condition: {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["a#*", "b#*"]}}},
	  {Effect: Allow, Action: x:P, Resource: "*"}]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	f := parsed.Functions[0]
	if f.Role != "OneRole" || f.LogGroup != "Log" {
		t.Errorf("the function has role %q and log group %q, want OneRole and Log", f.Role, f.LogGroup)
	}
	if other := parsed.Role("Other"); other != nil {
		t.Errorf("the template has no role Other, but %+v was found", other)
	}
	want := []roles.Statement{
		{Actions: []string{"a:A", "a:B"}, Resources: []string{"T", "T/stream", "T/index/due", "S"}},
		{
			Actions: []string{"k:D"}, Resources: []string{"Key"}, Condition: "Sometimes",
			Requires: []string{"StringEquals a b"},
		},
		{Actions: []string{"y:S"}, Resources: []string{"T/stream"}},
		{Actions: []string{"g:I"}, Resources: []string{"T"}, Kinds: []string{"a", "b"}},
		{Actions: []string{"x:P"}, Resources: []string{"*"}},
	}
	if difference := cmp.Diff(want, parsed.Role("OneRole").Statements); difference != "" {
		t.Errorf("the statements differ (-want +got):\n%s", difference)
	}
}

func TestUnsupportedRoles(t *testing.T) {
	statement := func(text string) string { return "{Policies: [{PolicyDocument: {Statement: [" + text + "]}}]}" }
	allow := func(action, resource string) string {
		return "{Effect: Allow, Action: " + action + ", Resource: " + resource + "}"
	}
	twoBranches := statement("!If [C, " + allow("a:A", `"*"`) + ", " + allow("a:B", `"*"`) + "]")
	const arn = `"arn:aws:s3:::b"`
	cases := map[string]struct{ properties, want string }{
		"no policy":                     {"{}", "without policies"},
		"no statement":                  {"{Policies: [{PolicyDocument: {}}]}", "without statements"},
		"managed policy":                {"{ManagedPolicyArns: [a], Policies: []}", "managed policies"},
		"denial":                        {statement(`{Effect: Deny, Action: a:A, Resource: "*"}`), "only Allow"},
		"all but one action":            {statement(`{NotAction: a:A, Resource: "*"}`), "NotAction is not supported"},
		"ARN":                           {statement(allow("a:A", arn)), "a reference"},
		"ARN under a condition":         {statement(allow("a:A", "!If [C, "+arn+", !Ref B]")), "a reference"},
		"ARN with a substitution":       {statement(allow("a:A", `!Sub "arn:aws:s3:::${B}"`)), "is not supported"},
		"an action with a substitution": {statement(allow(`!Sub "a:${B}"`, `"*"`)), "a plain text"},
		"no resource":                   {statement(`{Effect: Allow, Action: a:A}`), "without an action or a resource"},
		"two branches":                  {twoBranches, "the other branch"},
		"keys of no kind": {statement(`{Effect: Allow, Action: a:A, Resource: "*", ` +
			`Condition: {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["*"]}}}`), "write the kind and #*"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := roles.Parse(fmt.Appendf(nil, roleTemplate, c.properties))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestFunctionPoliciesAreRefused(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(roleTemplate, "{Policies: []}"), "Role: ", "Policies: [X], Role: ", 1)
	_, err := roles.Parse([]byte(text))
	if err == nil || !strings.Contains(err.Error(), "its role") {
		t.Errorf("the error is %v, want a hint at the function's role", err)
	}
}
