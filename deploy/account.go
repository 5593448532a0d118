package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// The stack of deploy/account.yaml, and how often and how far apart it is tried. A new role is not known everywhere at
// once: API Gateway refuses it for some seconds.
const (
	accountStack = "api-gateway-account"
	accountTries = 4
	accountPause = 15 * time.Second
)

// deployLogRole makes the role that API Gateway uses to write logs. A failed creation leaves no stack behind.
func (d deployment) deployLogRole(ctx context.Context) error {
	arguments := slices.Concat([]string{"deploy", "--template-file", filepath.Join(d.root, "deploy", "account.yaml"),
		"--stack-name", accountStack, "--capabilities", "CAPABILITY_IAM", "--on-failure", "DELETE",
		"--no-fail-on-empty-changeset", "--no-confirm-changeset", "--config-file",
		filepath.Join(d.root, "samconfig.toml"), "--config-env", d.configSection()}, d.config.regionArguments())
	for try := 1; ; try++ {
		err := runSAM(ctx, d.root, d.sam, arguments...)
		if err == nil {
			return nil
		}
		if try == accountTries || ctx.Err() != nil {
			return fmt.Errorf("the log role of API Gateway, stack %s: %w", accountStack, err)
		}
		fmt.Fprintf(d.out, "deploy: AWS may not know the new role yet: try %d of %d in %s\n", try+1, accountTries,
			accountPause)
		if err := d.pause(ctx, accountPause); err != nil {
			return err
		}
	}
}
