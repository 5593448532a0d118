package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// BuildProgram builds a program of cmd/ in a folder and returns its path.
func BuildProgram(ctx context.Context, folder, name string) (string, error) {
	path := filepath.Join(folder, name)
	output, err := exec.CommandContext(ctx, "go", "build", "-o", path, "mobilegateway/cmd/"+name).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, output)
	}
	return path, nil
}

// Books are both sides of a reconciliation: the journal of a platform's stub, and the ledger of a local run.
type Books struct {
	Program      string // gatewayctl, built
	LocalDir     string // with the run.json
	Platform     string
	StatementURL string // of the journal as a statement
	Day          time.Time
}

// Reconciliation is the result of gatewayctl reconcile --json.
type Reconciliation struct {
	Counts      map[string]int   `json:"counts"`
	Totals      []map[string]any `json:"totals"`
	Differences []Difference     `json:"differences"`
}

// Difference is a row of the result that is not equal.
type Difference struct {
	Class          string `json:"class"`
	ID             string `json:"id"` // ours; "" for a row that only the statement has
	OurStatus      string `json:"our_status"`
	OurAmount      string `json:"our_amount"`
	TheirReference string `json:"their_reference"`
	TheirKey       string `json:"their_order_id"`
	TheirAmount    string `json:"their_amount"`
	Command        string `json:"command"`
}

// The classes of differences that are not always a defect.
const (
	otherDay    = "other-day"
	oursAlone   = "ours-alone"
	theirsAlone = "theirs-alone"
)

// Equal is the number of rows that agree. One may be on either side of midnight.
func (r Reconciliation) Equal() int { return r.Counts["equal"] + r.Counts[otherDay] }

// Reconcile compares both sides by gatewayctl. The statement is in a folder of the caller.
func (b Books) Reconcile(ctx context.Context, folder string) (Reconciliation, error) {
	var found Reconciliation
	text, _, err := Call(ctx, http.MethodGet, b.StatementURL, "", nil)
	if err != nil {
		return found, err
	}
	path := filepath.Join(folder, b.Platform+".csv")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return found, err
	}
	command := exec.CommandContext(ctx, b.Program, "--local", "--json", "reconcile", "--platform", b.Platform,
		"--decimal", "point", "--day", b.Day.UTC().Format(time.DateOnly), "--statement", path)
	command.Env = append(os.Environ(), "LOCAL_DIR="+b.LocalDir)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err = command.Run()
	if exit, hasExit := errors.AsType[*exec.ExitError](err); hasExit && exit.ExitCode() == 1 {
		err = nil // there are differences
	}
	if err := errors.Join(err, json.Unmarshal(out.Bytes(), &found)); err != nil {
		return found, fmt.Errorf("reconcile %s: %w: %s", b.Platform, err, problems.Bytes())
	}
	return found, nil
}

// Explain returns an error for each difference that is neither open nor expected, and for each expected one that is
// missing. expected has the classes by id.
func (r Reconciliation) Explain(expected map[string]string) error {
	var faults []error
	seen := map[string]bool{}
	for _, row := range r.Differences {
		seen[row.ID] = true
		if !row.isOpen() && expected[row.ID] != row.Class {
			faults = append(faults, fmt.Errorf("%+v", row))
		}
	}
	for id, class := range expected {
		if !seen[id] {
			faults = append(faults, fmt.Errorf("%s is not %s", id, class))
		}
	}
	const maxReported = 40
	return errors.Join(faults[:min(len(faults), maxReported)]...)
}

// isOpen reports whether a difference is a transaction of ours that is pending or unknown: it waits for its operator or
// for a person. A transaction may also be on either side of midnight.
func (d Difference) isOpen() bool {
	isOpen := d.ID != "" && (d.OurStatus == "pending" || d.OurStatus == "unknown")
	return d.Class == otherDay || isOpen && (d.Class == oursAlone || d.Class == theirsAlone)
}
