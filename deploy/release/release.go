// Package release moves a stack's aliases back to the version before, and stops a running deployment, by the AWS CLI.
package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// AliasName is the alias of each function, as template.yaml has it.
const AliasName = "live"

// Stack is a stack in a region, "" for the region of the AWS tools.
type Stack struct{ Name, Region string }

// Move is an alias that goes back from one version to another.
type Move struct{ Function, From, To string }

// Plan is what a rollback does. It leads from any mix of the two releases to the same versions, so a rollback that
// ended early is run again.
type Plan struct {
	Moves []Move
	// Kept has a sentence for each alias that stays: it has moved already, or there is no version before.
	Kept []string
}

// PlanRollback returns what a rollback does. A function goes to the version before the one that the stack deployed
// last. One that has none stays: the release added it. PlanRollback fails while the stack is updated, or if nothing is
// left to go back to.
func PlanRollback(ctx context.Context, stack Stack) (Plan, error) {
	var plan Plan
	status, err := stack.status(ctx)
	if err != nil {
		return plan, err
	}
	if strings.HasSuffix(status, "_IN_PROGRESS") {
		return plan, fmt.Errorf("%s is %s: stop that deployment with make abort, or wait until it ends", stack.Name,
			status)
	}
	functions, err := stack.resources(ctx, "AWS::Lambda::Function")
	if err != nil {
		return plan, err
	}
	deployed, err := stack.deployedVersions(ctx)
	if err != nil {
		return plan, err
	}
	added := 0
	for _, function := range functions {
		alias, before, err := stack.versions(ctx, function, deployed[function])
		if err != nil {
			return plan, err
		}
		switch {
		case before == 0:
			added++
			plan.Kept = append(plan.Kept, fmt.Sprintf("%s: stays at version %d, it has none before", function, alias))
		case alias <= before:
			plan.Kept = append(plan.Kept, fmt.Sprintf("%s: is at version %d already", function, alias))
		default:
			plan.Moves = append(plan.Moves, Move{function, strconv.Itoa(alias), strconv.Itoa(before)})
		}
	}
	switch {
	case len(functions) == 0:
		return plan, fmt.Errorf("%s has no function: check its name and region", stack.Name)
	case added == len(functions):
		return plan, fmt.Errorf("no function of %s has a version before: deploy the commit before", stack.Name)
	}
	return plan, nil
}

// deployedVersions returns the version of each function that the stack deployed last.
func (s Stack) deployedVersions(ctx context.Context) (map[string]int, error) {
	arns, err := s.resources(ctx, "AWS::Lambda::Version")
	if err != nil {
		return nil, err
	}
	versions := map[string]int{}
	for _, arn := range arns {
		parts := strings.Split(arn, ":")
		number, err := strconv.Atoi(parts[len(parts)-1])
		if err != nil || len(parts) < 2 {
			return nil, fmt.Errorf("%s has a version %q, want an ARN that ends in its number", s.Name, arn)
		}
		function := parts[len(parts)-2]
		versions[function] = max(versions[function], number)
	}
	return versions, nil
}

// versions returns the version of a function's alias, and the last one before the deployed version, 0 for none.
func (s Stack) versions(ctx context.Context, function string, deployed int) (alias, before int, err error) {
	var found struct {
		FunctionVersion string
		RoutingConfig   *struct{ AdditionalVersionWeights map[string]float64 }
	}
	if err := s.call(ctx, &found, "lambda", "get-alias", "--function-name", function, "--name", AliasName); err != nil {
		return 0, 0, err
	}
	if found.RoutingConfig != nil && len(found.RoutingConfig.AdditionalVersionWeights) > 0 {
		return 0, 0, fmt.Errorf("%s serves two versions: stop its deployment with make abort first", function)
	}
	alias, err = strconv.Atoi(found.FunctionVersion)
	if err != nil || deployed == 0 {
		return 0, 0, fmt.Errorf("the alias of %s is at %q, and the stack deployed version %d of it: run make deploy "+
			"once", function, found.FunctionVersion, deployed)
	}
	var list struct{ Versions []struct{ Version string } }
	if err := s.call(ctx, &list, "lambda", "list-versions-by-function", "--function-name", function); err != nil {
		return 0, 0, err
	}
	for _, v := range list.Versions {
		if number, err := strconv.Atoi(v.Version); err == nil && number < deployed { // $LATEST has none
			before = max(before, number)
		}
	}
	return alias, before, nil
}

// Rollback makes the moves, and writes each. After an error the plan of the next run has those that are left.
func Rollback(ctx context.Context, stack Stack, moves []Move, out io.Writer) error {
	for i, move := range moves {
		err := stack.call(ctx, nil, "lambda", "update-alias", "--function-name", move.Function, "--name", AliasName,
			"--function-version", move.To)
		if err != nil {
			return fmt.Errorf("%w\n%d of %d aliases moved: run the rollback again, it moves the others", err, i,
				len(moves))
		}
		fmt.Fprintf(out, "%s: %s -> %s\n", move.Function, move.From, move.To)
	}
	return nil
}

// Abort stops the running deployments of CodeDeploy, and then the update of the stack. CloudFormation returns to the
// state before. It writes what it stops.
func Abort(ctx context.Context, stack Stack, out io.Writer) error {
	status, err := stack.status(ctx)
	if err != nil {
		return err
	}
	if status != "UPDATE_IN_PROGRESS" {
		return fmt.Errorf("%s is %s: no update of it can be stopped", stack.Name, status)
	}
	applications, err := stack.resources(ctx, "AWS::CodeDeploy::Application")
	if err != nil {
		return err
	}
	for _, application := range applications {
		if err := stack.stopDeployments(ctx, application, out); err != nil {
			return err
		}
	}
	if err := stack.call(ctx, nil, "cloudformation", "cancel-update-stack", "--stack-name", stack.Name); err != nil {
		// A stopped deployment also ends the update, which then is no longer to be stopped.
		if status, failed := stack.status(ctx); failed == nil && strings.Contains(status, "ROLLBACK") {
			fmt.Fprintf(out, "%s is %s already\n", stack.Name, status)
			return nil
		}
		return err
	}
	fmt.Fprintf(out, "%s: update stopped\n", stack.Name)
	return nil
}

func (s Stack) stopDeployments(ctx context.Context, application string, out io.Writer) error {
	var groups struct {
		Groups []string `json:"deploymentGroups"`
	}
	if err := s.call(ctx, &groups, "deploy", "list-deployment-groups", "--application-name", application); err != nil {
		return err
	}
	for _, group := range groups.Groups {
		var running struct{ Deployments []string }
		err := s.call(ctx, &running, "deploy", "list-deployments", "--application-name", application,
			"--deployment-group-name", group, "--include-only-statuses", "Created", "Queued", "InProgress", "Ready")
		if err != nil {
			return err
		}
		for _, deployment := range running.Deployments {
			if err := s.call(ctx, nil, "deploy", "stop-deployment", "--deployment-id", deployment,
				"--auto-rollback-enabled"); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: deployment %s stopped\n", group, deployment)
		}
	}
	return nil
}

func (s Stack) status(ctx context.Context) (string, error) {
	var found struct {
		Stacks []struct{ StackStatus string }
	}
	if err := s.call(ctx, &found, "cloudformation", "describe-stacks", "--stack-name", s.Name); err != nil {
		return "", err
	}
	if len(found.Stacks) != 1 {
		return "", fmt.Errorf("there is not one stack %s: check its name and region", s.Name)
	}
	return found.Stacks[0].StackStatus, nil
}

// resources returns the physical ids of the stack's resources of a type, in the order of AWS.
func (s Stack) resources(ctx context.Context, kind string) ([]string, error) {
	var found struct {
		StackResourceSummaries []struct {
			ResourceType, ResourceStatus string
			ID                           string `json:"PhysicalResourceId"`
		}
	}
	if err := s.call(ctx, &found, "cloudformation", "list-stack-resources", "--stack-name", s.Name); err != nil {
		return nil, err
	}
	var ids []string
	for _, resource := range found.StackResourceSummaries {
		if resource.ResourceType == kind && resource.ResourceStatus != "DELETE_COMPLETE" {
			ids = append(ids, resource.ID)
		}
	}
	return ids, nil
}

// call runs the AWS CLI, which follows pages itself, and decodes its output into found, unless that is nil.
func (s Stack) call(ctx context.Context, found any, arguments ...string) error {
	arguments = append(arguments, "--output", "json")
	if s.Region != "" {
		arguments = append(arguments, "--region", s.Region)
	}
	command := exec.CommandContext(ctx, "aws", arguments...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	text, err := command.Output()
	name := strings.Join(arguments[:2], " ")
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("aws is not on the PATH: install the AWS CLI 2")
	}
	if err != nil {
		return fmt.Errorf("aws %s: %w\n%s", name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	if found == nil {
		return nil
	}
	if err := json.Unmarshal(text, found); err != nil {
		return fmt.Errorf("decode the output of aws %s: %w", name, err)
	}
	return nil
}
