package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"mobilegateway/deploy/samcli"
)

// deployAlarms deploys deploy/alarms.yaml as a stack of its own, after the gateway's stack, whose outputs it takes as
// parameters. It imports none of them, so that either stack can be deleted.
func (d deployment) deployAlarms(ctx context.Context, known templateFile) error {
	file := filepath.Join(d.root, "deploy", "alarms.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	alarms, err := readTemplate(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	outputs, err := samcli.StackOutputs(ctx, d.root, d.sam, d.stackName(), d.config.outputsArguments()...)
	if err != nil {
		return fmt.Errorf("read the outputs of %s: %w", d.stackName(), err)
	}
	given := parameters{
		"Gateway": d.stackName(), "AlarmTopicArn": d.given["AlarmTopicArn"],
		"AccountConcurrency": cmp.Or(d.given["AccountConcurrency"], known.Parameters["AccountConcurrency"].Default),
	}
	for name := range alarms.Parameters {
		if _, found := given[name]; found {
			continue
		}
		if given[name] = outputs[name]; given[name] == "" {
			return fmt.Errorf("the stack %s has no output %s: was its change set declined?", d.stackName(), name)
		}
	}
	deploy := []string{"deploy", "--template-file", file, "--stack-name", d.stackName() + "-alarms",
		"--no-fail-on-empty-changeset"}
	return runSAM(ctx, d.root, d.sam, slices.Concat(deploy, d.confirmation(), d.settings(given))...)
}
