package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// stack checks that the stack takes an update, and reads its parameters.
func (c *checker) stack(ctx context.Context) []Finding {
	const check = "state of the stack"
	found, err := c.stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String(c.Stack)})
	if isAbsent(err) || err == nil && len(found.Stacks) == 0 {
		c.mergeParameters(nil)
		return []Finding{{Check: check}}
	}
	if err != nil {
		c.mergeParameters(nil)
		return unchecked(check, "cloudformation:DescribeStacks", err)
	}
	live := map[string]string{}
	for _, parameter := range found.Stacks[0].Parameters {
		live[aws.ToString(parameter.ParameterKey)] = aws.ToString(parameter.ParameterValue)
	}
	c.mergeParameters(live)
	status := found.Stacks[0].StackStatus
	c.live = status != types.StackStatusReviewInProgress
	c.report.StackExists = c.live
	if action := whatToDo(status, c.Stack); action != "" {
		return []Finding{{check, fmt.Sprintf("%s is %s and takes no update", c.Stack, status), action, true}}
	}
	return []Finding{{Check: check}}
}

// whatToDo returns what to do about a stack that takes no update, "" for one that takes it.
func whatToDo(status types.StackStatus, name string) string {
	remove := "docs/deploy.md, \"If the first deployment fails\", has the way; then deploy again"
	switch {
	case status == types.StackStatusReviewInProgress: // a change set that was never executed
		return ""
	case status == types.StackStatusUpdateRollbackFailed:
		return "correct the cause in its events, then: aws cloudformation continue-update-rollback --stack-name " + name
	case status == types.StackStatusRollbackComplete, status == types.StackStatusRollbackFailed,
		status == types.StackStatusCreateFailed:
		return remove
	case status == types.StackStatusDeleteFailed:
		return "correct the cause in its events, then: aws cloudformation delete-stack --stack-name " + name
	case strings.HasSuffix(string(status), "_IN_PROGRESS"):
		return "wait until it ends: aws cloudformation describe-stacks --stack-name " + name
	}
	return ""
}

// ownData refuses to name another table, secret or log group for one that the live stack has or names. CloudFormation
// would take the stack's own one, with its content, out of the stack, and the functions would work on the other one.
func (c *checker) ownData(ctx context.Context) []Finding {
	const check = "tables and secrets"
	var findings []Finding
	reported := map[string]bool{} // parameters with a finding
	for _, data := range c.Data {
		given, isGiven := c.Given[data.Parameter]
		if !c.live || !isGiven || reported[data.Parameter] {
			continue
		}
		if live := c.current[data.Parameter]; live != "" && live != given {
			reported[data.Parameter] = true
			findings = append(findings, Finding{check, fmt.Sprintf("%s is %s for the live stack, which works on those "+
				"tables and secrets, not %q", data.Parameter, live, given), "leave " + data.Parameter + " as it is",
				true})
			continue
		}
		if given == "" {
			continue
		}
		found, err := c.stacks.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{
			StackName: aws.String(c.Stack), LogicalResourceId: aws.String(data.LogicalID),
		})
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return unchecked(check, "cloudformation:DescribeStackResources", err)
		}
		for _, resource := range found.StackResources {
			own := aws.ToString(resource.PhysicalResourceId)
			if resource.ResourceStatus != types.ResourceStatusDeleteComplete && own != "" {
				reported[data.Parameter] = true
				findings = append(findings, Finding{check,
					fmt.Sprintf("%s names another %s for a live stack that has %s", data.Parameter, data.LogicalID,
						own),
					"keep " + data.Parameter + " empty for this stack, or move its data first: docs/deploy.md, " +
						"\"Keep data in a stack of its own\"", true})
			}
		}
	}
	if findings == nil {
		return []Finding{{Check: check}}
	}
	return findings
}

// isAbsent reports whether CloudFormation has no stack or resource of a name. Its code for that is the one of all
// invalid requests.
func isAbsent(err error) bool {
	return isCode(err, "ValidationError") && strings.Contains(err.Error(), "not exist")
}

// ownerOf returns the stack that has a resource, "" if none has it.
func (c *checker) ownerOf(ctx context.Context, physicalID string) (string, error) {
	found, err := c.stacks.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{
		PhysicalResourceId: aws.String(physicalID),
	})
	if isAbsent(err) {
		return "", nil
	}
	if err != nil || len(found.StackResources) == 0 {
		return "", err
	}
	return aws.ToString(found.StackResources[0].StackName), nil
}

// dataPolicy lets no update of a stack replace or delete a resource.
const dataPolicy = `{"Statement": [
  {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"},
  {"Effect": "Deny", "Action": ["Update:Replace", "Update:Delete"], "Principal": "*", "Resource": "*"}]}`

// ProtectData turns a stack's termination protection on, and lets no update replace or delete one of its resources.
func ProtectData(ctx context.Context, configuration aws.Config, stack string) error {
	if err := Protect(ctx, configuration, stack); err != nil {
		return err
	}
	_, err := cloudformation.NewFromConfig(configuration).SetStackPolicy(ctx, &cloudformation.SetStackPolicyInput{
		StackName: aws.String(stack), StackPolicyBody: aws.String(dataPolicy),
	})
	if err != nil {
		return fmt.Errorf("set the stack policy of %s: %s", stack, reason(err))
	}
	return nil
}

// Protect turns a stack's termination protection on.
func Protect(ctx context.Context, configuration aws.Config, stack string) error {
	_, err := cloudformation.NewFromConfig(configuration).UpdateTerminationProtection(ctx,
		&cloudformation.UpdateTerminationProtectionInput{
			StackName: aws.String(stack), EnableTerminationProtection: aws.Bool(true),
		})
	if err != nil {
		return fmt.Errorf("turn on the termination protection of %s: %s", stack, reason(err))
	}
	return nil
}
