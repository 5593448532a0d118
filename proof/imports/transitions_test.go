package imports

import (
	"fmt"
	"go/constant"
	"go/types"
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
)

const ledgerPath = modulePath + "/shared/ledger"

// TestTransitionCallers checks that the callers of each transition of the ledger are those of its row.
func TestTransitionCallers(t *testing.T) {
	callers := map[ledger.Transition][]string{}
	for _, s := range loadTree(t).Packages {
		if !s.inFolders("shared", "functions", "gatewayctl") || s.inFolders("shared/ledger") {
			continue
		}
		for _, use := range s.Info.Uses {
			if writesPastBook(use) {
				t.Errorf("%s calls %s of the ledger's store: write through ledger.Book", s.Path, use.Name())
			}
			for _, made := range transitionsOf(use) {
				if !slices.Contains(callers[made], s.Path) {
					callers[made] = append(callers[made], s.Path)
				}
			}
		}
	}
	for _, problem := range compareCallers(ledger.Rows(), callers) {
		t.Error(problem)
	}
}

// transitionsOf returns the transitions that a use makes: one that it names, or those of a method that makes them.
func transitionsOf(use types.Object) []ledger.Transition {
	switch object := use.(type) {
	case *types.Const:
		if object.Type().String() == ledgerPath+".Transition" {
			number, _ := constant.Uint64Val(object.Val())
			return []ledger.Transition{ledger.Transition(number)}
		}
	case *types.Func:
		return map[string][]ledger.Transition{
			"(*" + ledgerPath + ".Book).Reserve":            {ledger.Reserve, ledger.TakeOver},
			"(*" + ledgerPath + ".Book).ReserveExisting":    {ledger.TakeOver},
			"(" + ledgerPath + ".Transition).After":         {ledger.KeepConflict},
			"(*" + ledgerPath + ".Book).BindReference":      {ledger.BindReference},
			"(" + ledgerPath + ".Writer).ClaimReference":    {ledger.BindReference},
			"(" + ledgerPath + ".DueQueue).MoveDue":         {ledger.MoveDue},
			"(" + ledgerPath + ".MessageIndex).BindMessage": {ledger.BindMessage},
			"(" + ledgerPath + ".MessageIndex).FindMessage": {ledger.FindMessage},
		}[object.FullName()]
	}
	return nil
}

// writesPastBook reports whether a use is a write of the ledger's store that names its own transition.
func writesPastBook(use types.Object) bool {
	method, isFunc := use.(*types.Func)
	return isFunc && (method.Name() == "Insert" || method.Name() == "Replace") &&
		strings.Contains(method.FullName(), ledgerPath)
}

// compareCallers returns the differences between the callers of the rows and those in the tree.
func compareCallers(rows []ledger.Row, callers map[ledger.Transition][]string) (problems []string) {
	report := func(format string, arguments ...any) { problems = append(problems, fmt.Sprintf(format, arguments...)) }
	for i, row := range rows {
		expected, found := strings.Fields(row.Callers), callers[ledger.Transition(i+1)]
		for _, caller := range found {
			if !slices.Contains(expected, caller) {
				report("%s makes the write %q: its row has other callers", caller, row.Name)
			}
		}
		for _, caller := range expected {
			if !slices.Contains(found, caller) {
				report("%s does not make the write %q of its row", caller, row.Name)
			}
		}
	}
	return problems
}

func TestCompareCallersFindsViolations(t *testing.T) {
	rows := []ledger.Row{{Name: "lapse", Callers: "functions/sweep"}}
	for want, callers := range map[string][]string{
		"":                                {"functions/sweep"},
		"functions/relay makes the write": {"functions/relay", "functions/sweep"},
		"functions/sweep does not make":   nil,
	} {
		problems := compareCallers(rows, map[ledger.Transition][]string{1: callers})
		problem := strings.Join(problems, "\n")
		if !strings.Contains(problem, want) || (want == "") != (problem == "") {
			t.Errorf("callers %q: %q, want %q", callers, problems, want)
		}
	}
}
