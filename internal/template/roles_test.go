package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/template"
)

// roleTemplate is a template whose role a test fills in.
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
	parsed, err := template.Parse(fmt.Appendf(nil, roleTemplate, `{Policies: [{PolicyDocument: {Statement: [
	  {Effect: Allow, Action: [a:A, a:B], Resource: [!GetAtt T.Arn, !GetAtt T.StreamArn, !Sub "${T.Arn}/index/due", !Ref S]},
	  !If [Sometimes, {Sid: x, Effect: Allow, Action: k:D, Resource: !Ref Key, Condition: {StringEquals: {a: b}}}, !Ref AWS::NoValue],
	  {Effect: Allow, Action: y:S, Resource: !If [Sometimes, !Ref Other, !GetAtt T.StreamArn]},
	  {Effect: Allow, Action: x:P, Resource: "*"}]}}]}`), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := parsed.Functions[0]
	if f.Role != "OneRole" || f.LogGroup != "Log" || parsed.Role("Other") != nil {
		t.Errorf("%+v", f)
	}
	want := []template.Statement{
		{Actions: []string{"a:A", "a:B"}, Resources: []string{"T", "T/stream", "T/index/due", "S"}},
		{Actions: []string{"k:D"}, Resources: []string{"Key"}, Condition: "Sometimes"},
		{Actions: []string{"y:S"}, Resources: []string{"T/stream"}},
		{Actions: []string{"x:P"}, Resources: []string{"*"}},
	}
	actual := parsed.Role("OneRole").Statements
	if !slices.EqualFunc(actual, want, func(a, b template.Statement) bool {
		return slices.Equal(a.Actions, b.Actions) && slices.Equal(a.Resources, b.Resources) && a.Condition == b.Condition
	}) {
		t.Errorf("%+v", actual)
	}
}

func TestUnsupportedRoles(t *testing.T) {
	statement := func(text string) string { return "{Policies: [{PolicyDocument: {Statement: [" + text + "]}}]}" }
	cases := map[string]struct{ properties, want string }{
		"no policy":          {"{}", "without policies"},
		"no statement":       {"{Policies: [{PolicyDocument: {}}]}", "without statements"},
		"a managed policy":   {"{ManagedPolicyArns: [a], Policies: []}", "managed policies"},
		"a denial":           {statement(`{Effect: Deny, Action: a:A, Resource: "*"}`), "only Allow"},
		"all but one action": {statement(`{Effect: Allow, NotAction: a:A, Resource: "*"}`), "NotAction is not understood"},
		"an ARN":             {statement(`{Effect: Allow, Action: a:A, Resource: "arn:aws:s3:::b"}`), "a reference"},
		"an ARN, sometimes":  {statement(`{Effect: Allow, Action: a:A, Resource: !If [C, "arn:aws:s3:::b", !Ref B]}`), "a reference"},
		"a name that is put together": {
			statement(`{Effect: Allow, Action: a:A, Resource: !Sub "arn:aws:s3:::${B}"}`), "not understood as a resource",
		},
		"an action that is put together": {statement(`{Effect: Allow, Action: !Sub "a:${B}", Resource: "*"}`), "a plain text"},
		"no resource":                    {statement(`{Effect: Allow, Action: a:A}`), "without an action or a resource"},
		"two branches": {
			statement(`!If [C, {Effect: Allow, Action: a:A, Resource: "*"}, {Effect: Allow, Action: a:B, Resource: "*"}]`), "the other branch",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := template.Parse(fmt.Appendf(nil, roleTemplate, c.properties), template.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestFunctionPoliciesAreRefused(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(roleTemplate, "{Policies: []}"), "Role: ", "Policies: [X], Role: ", 1)
	if _, err := template.Parse([]byte(text), template.Options{}); err == nil || !strings.Contains(err.Error(), "its role") {
		t.Error(err)
	}
}
