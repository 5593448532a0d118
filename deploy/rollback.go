package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"mobilegateway/deploy/release"
)

// newerItems is the warning about what a rollback does not do. docs/deploy.md names the versions.
const newerItems = `A rollback changes programs and their settings, and no item. The version before must read what the
newer one wrote: docs/deploy.md, "Roll back", lists the changes after which it does not.
`

// changeRelease rolls a stack back or stops its deployment. Without YES=1 a rollback is a dry run, and an abort
// prompts.
func (s system) changeRelease(ctx context.Context, config samconfig, o deployOptions) error {
	stack := release.Stack{Name: cmp.Or(o.stack, config.stackName(config.section)), Region: config.region()}
	if want := config.kept.Account; want != "" {
		// An account that is not known stops nothing: this is for emergencies.
		if account, _ := s.who(ctx); account != "" && account != want {
			return fmt.Errorf("the account is %s, not %s of %s: use its credentials", account, want,
				environmentPath(o.environment))
		}
	}
	if o.abort {
		if err := s.confirmAbort(stack.Name, o); err != nil {
			return err
		}
		return release.Abort(ctx, stack, s.out)
	}
	plan, err := release.PlanRollback(ctx, stack)
	if err != nil {
		return err
	}
	for _, move := range plan.Moves {
		fmt.Fprintf(s.out, "%s: version %s to %s\n", move.Function, move.From, move.To)
	}
	for _, kept := range plan.Kept {
		fmt.Fprintln(s.out, kept)
	}
	if len(plan.Moves) == 0 {
		fmt.Fprintln(s.out, "No alias is left to move.")
		return nil
	}
	fmt.Fprint(s.out, newerItems)
	if !o.skipConfirmation {
		fmt.Fprintln(s.out, "Nothing was changed: repeat the command with YES=1 to move the aliases.")
		return nil
	}
	return release.Rollback(ctx, stack, plan.Moves, s.out)
}

// confirmAbort prompts before a deployment is stopped, as SAM does before it begins one.
func (s system) confirmAbort(stack string, o deployOptions) error {
	if o.skipConfirmation {
		return nil
	}
	if s.in == nil {
		return errors.New("nothing was stopped: run this at a terminal, which prompts for confirmation, or with YES=1")
	}
	fmt.Fprintf(s.out, "Stop the deployment of %s, and return to the version before? [y/N]: ", stack)
	lines := bufio.NewScanner(s.in)
	lines.Scan()
	if reply := strings.ToLower(strings.TrimSpace(lines.Text())); reply != "y" && reply != "yes" {
		return errors.Join(fmt.Errorf("nothing was stopped: the deployment of %s continues", stack), lines.Err())
	}
	return nil
}
