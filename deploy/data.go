package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"mobilegateway/deploy/samcli"
)

// dataStackSuffix follows the name of prod's stack in the name of the stack with its data.
const dataStackSuffix = "-data"

// chooseDataStack names prod's data stack, unless its settings name one, or an empty one to keep the data in the
// gateway's stack.
func (d deployment) chooseDataStack() {
	if _, isChosen := d.given["DataStack"]; !isChosen && d.environment == "prod" {
		d.given["DataStack"] = d.stackName() + dataStackSuffix
	}
}

// deployData deploys deploy/data.yaml as a stack of its own, protects it, and gives the ledger's stream to the
// gateway's stack. region is that of the stack. It does nothing without a data stack.
func (d deployment) deployData(ctx context.Context, region string) error {
	stack := d.given["DataStack"]
	if stack == "" {
		return nil
	}
	own := parameters{"GatewayStack": d.stackName(), "LogRetentionDays": cmp.Or(d.given["LogRetentionDays"], "90")}
	if key, isGiven := d.given["KmsKeyArn"]; isGiven {
		own["KmsKeyArn"] = key
	}
	deploy := []string{"deploy", "--template-file", filepath.Join(d.root, "deploy", "data.yaml"), "--stack-name", stack,
		"--no-fail-on-empty-changeset"}
	if err := runSAM(ctx, d.root, d.sam, slices.Concat(deploy, d.confirmation(), d.settings(own))...); err != nil {
		return err
	}
	outputs, err := samcli.StackOutputs(ctx, d.root, d.sam, stack, d.config.outputsArguments()...)
	if err != nil {
		return fmt.Errorf("read the outputs of %s: %w", stack, err)
	}
	d.given["LedgerStreamArn"] = cmp.Or(d.given["LedgerStreamArn"], outputs["LedgerStreamArn"])
	if d.given["LedgerStreamArn"] == "" {
		return fmt.Errorf("the stack %s has no output LedgerStreamArn: was its change set declined?", stack)
	}
	return d.protectData(ctx, region, stack)
}
