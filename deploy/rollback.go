package main

import (
	"cmp"
	"context"
	"fmt"

	"mobilegateway/deploy/release"
)

// newerItems is the warning about what a rollback does not do. docs/deploy.md names the versions.
const newerItems = `A rollback changes programs and their settings, and no item. The version before must read what the
newer one wrote: docs/deploy.md, "Roll back", lists the changes after which it does not.
`

// changeRelease rolls a stack back or stops its deployment. A rollback is a dry run without YES=1.
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
		return release.Abort(ctx, stack, s.out)
	}
	moves, err := release.PlanRollback(ctx, stack)
	if err != nil {
		return err
	}
	for _, move := range moves {
		fmt.Fprintf(s.out, "%s: version %s to %s\n", move.Function, move.From, move.To)
	}
	fmt.Fprint(s.out, newerItems)
	if !o.skipConfirmation {
		fmt.Fprintln(s.out, "Nothing was changed: repeat the command with YES=1 to move the aliases.")
		return nil
	}
	return release.Rollback(ctx, stack, moves, s.out)
}
