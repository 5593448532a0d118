package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"mobilegateway/deploy/samcli"
)

// aliasOutput is an output that only the gradual form of template.yaml has.
const aliasOutput = "Alias"

// refuseAliasLoss refuses to deploy a stack with aliases all at once. The deployment would remove them, and with them
// the version to which an operator could roll back.
func refuseAliasLoss(ctx context.Context, root, sam string, config samconfig, o deployOptions) error {
	if o.gradual || o.dropAliases {
		return nil
	}
	stack := cmp.Or(o.stack, config.stackName(config.section))
	if stack == "" {
		return fmt.Errorf("samconfig.toml has no stack name for %s", o.environment)
	}
	found, err := samcli.StackOutputs(ctx, root, sam, stack, config.outputsArguments()...)
	if errors.Is(err, samcli.ErrStackNotFound) {
		return nil
	}
	if err != nil { // the deployment would fail too: it calls the same service with the same permissions
		return fmt.Errorf("check whether the stack has aliases: %w", err)
	}
	if found[aliasOutput] != "" {
		return fmt.Errorf("%s was deployed gradually, and a deployment all at once removes its aliases: "+
			"use GRADUAL=1, or DROP_ALIASES=1 to remove them", stack)
	}
	return nil
}
