package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// report is what we read of checkov's.
type report struct {
	CheckType string `json:"check_type"`
	Results   struct {
		Passed  []finding `json:"passed_checks"`
		Failed  []finding `json:"failed_checks"`
		Skipped []finding `json:"skipped_checks"`
		Broken  []string  `json:"parsing_errors"`
	} `json:"results"`
}

// finding is one check of one resource.
type finding struct {
	ID       string `json:"check_id"`
	Name     string `json:"check_name"`
	File     string `json:"file_abs_path"` // as it was named to checkov
	Resource string `json:"resource"`
	Lines    []int  `json:"file_line_range"`
	Result   struct {
		Comment string `json:"suppress_comment"`
	} `json:"check_result"`
}

// suppression is the word that tells checkov to skip checks, in a resource's Metadata or a comment.
var suppression = regexp.MustCompile(`\bcheckov:`)

// audit gives what checkov finds in the templates, and what is wrong with their suppressions: each template is looked at
// once more with none in force.
func audit(ctx context.Context, top string, files []string, out io.Writer) ([]string, error) {
	opened := map[string]string{} // the file without suppressions, by its own name
	args := []string{"--skip-download", "--framework", "cloudformation", "--output", "json", "--file"}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			return nil, err
		}
		variant := filepath.Join(work, "open", name)
		if err := write(filepath.Join(top, variant), suppression.ReplaceAll(text, []byte("unheard:"))); err != nil {
			return nil, err
		}
		opened[name] = variant
		args = append(args, name, variant)
	}
	text, err := run(ctx, top, filepath.Join(top, checkov), args...)
	var failed *exec.ExitError
	if err != nil && !(errors.As(err, &failed) && failed.ExitCode() == 1) { // 1 is for findings
		return nil, err
	}
	all, err := readReport(text)
	if err != nil {
		return nil, err
	}
	return judge(all, opened, out)
}

// readReport reads checkov's JSON: one report, or a list of them.
func readReport(text []byte) (report, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return report{}, errors.New("checkov: more kinds of findings than CloudFormation's")
	}
	var all report
	if err := json.Unmarshal(text, &all); err != nil {
		return report{}, fmt.Errorf("checkov: %w", err)
	}
	if all.CheckType != "cloudformation" {
		return report{}, fmt.Errorf("checkov looked at no resource: %s", text)
	}
	if len(all.Results.Broken) > 0 {
		return report{}, fmt.Errorf("checkov cannot read %s", strings.Join(all.Results.Broken, ", "))
	}
	return all, nil
}

// judge compares each template with its open variant.
func judge(all report, opened map[string]string, out io.Writer) ([]string, error) {
	type check struct{ file, resource, id string }
	needed, looked := map[check]bool{}, map[string]int{}
	for _, f := range all.Results.Passed {
		looked[f.File]++
	}
	var found []string
	for _, f := range all.Results.Failed {
		looked[f.File]++
		needed[check{f.File, f.Resource, f.ID}] = true
		if opened[f.File] != "" {
			found = append(found, fmt.Sprintf("%s:%d: %s %s: %s", f.File, line(f), f.Resource, f.ID, f.Name))
		}
	}
	for _, f := range all.Results.Skipped {
		if len(strings.Fields(f.Result.Comment)) < 4 || f.Result.Comment == "No comment provided" {
			found = append(found, fmt.Sprintf("%s:%d: %s %s is suppressed without a reason", f.File, line(f), f.Resource, f.ID))
		}
		if !needed[check{opened[f.File], f.Resource, f.ID}] {
			found = append(found, fmt.Sprintf("%s:%d: %s %s is suppressed, and would pass", f.File, line(f), f.Resource, f.ID))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(opened)) {
		if looked[name] == 0 || looked[opened[name]] == 0 {
			return nil, fmt.Errorf("checkov checked nothing in %s", name)
		}
		fmt.Fprintf(out, "template: checkov passed %d checks in %s\n", looked[name], name)
	}
	return found, nil
}

// line is where a resource begins.
func line(f finding) int {
	if len(f.Lines) == 0 {
		return 0
	}
	return f.Lines[0]
}
